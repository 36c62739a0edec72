/**
 * Commands inside walls of the operating system: what gets through and what does not, for every engine that this host has; the command line
 * for the others.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import {
  defaultSandboxLimits,
  type SandboxEngine,
  type SandboxPolicy,
  sandboxPrefix,
} from "../../src/tools/os-sandbox.ts"
import { probeSandbox } from "../../src/tools/os-sandbox-probe.ts"
import { commandWalls, policyOf } from "../../src/tools/os-sandbox-walls.ts"
import { ProcessGroup } from "../../src/tools/process-group.ts"
import type { CommandSandbox, Workspace } from "../../src/tools/tool.ts"
import { call, outputOf, temporaryDirectory, workspaceWith, writeFiles } from "./support.ts"

const report = await probeSandbox()
const works = (engine: SandboxEngine) => report.engines.some((one) => one.engine === engine && one.works)

const sandbox: CommandSandbox = { mode: "auto", network: false, writable: [], hidden: [] }

interface Ran {
  readonly code: number | null
  readonly output: string
}

/** A command inside the walls of one engine. */
const inside = (engine: SandboxEngine, policy: SandboxPolicy, command: string): Effect.Effect<Ran> =>
  Effect.promise(async () => {
    let output = ""
    const group = await ProcessGroup.start({
      command,
      cwd: policy.root,
      env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "" },
      shell: "bash",
      prefix: sandboxPrefix(engine, policy),
      onOutput: (chunk) => {
        output += chunk.toString("utf8")
        return undefined
      },
    })
    const { exitCode } = await group.exit
    return { code: exitCode, output: output.trim() }
  })

for (const engine of ["bwrap", "unshare"] as const) {
  describe.runIf(works(engine))(`with ${engine} a command`, () => {
    const walled = (command: string, change: Partial<CommandSandbox> = {}, files: Record<string, string> = {}) =>
      Effect.gen(function* () {
        const { root } = yield* workspaceWith(files)
        const ran = yield* inside(engine, policyOf(root, { ...sandbox, ...change }), command)
        return { ...ran, root }
      })

    it.scoped("writes to the workspace, which is its directory, and nowhere else", () =>
      Effect.gen(function* () {
        const outside = yield* temporaryDirectory
        const { code, output, root } = yield* walled(
          `pwd; echo mine > new; cat old; touch /etc/x-${process.pid} ${outside}/x /usr/x /var/x 2>&1 | wc -l`,
          {},
          { old: "old" },
        )
        expect(output.split("\n")).toEqual([root, "old4"])
        expect(code).toBe(0)
        expect(readFileSync(join(root, "new"), "utf8")).toBe("mine\n")
        expect(existsSync(join(outside, "x"))).toBe(false)
      }),
    )

    it.scoped("writes to further directories that are allowed", () =>
      Effect.gen(function* () {
        const more = yield* temporaryDirectory
        yield* walled(`echo x > ${more}/x`, { writable: [more] })
        expect(readFileSync(join(more, "x"), "utf8")).toBe("x\n")
      }),
    )

    it.scoped("has a /tmp of its own, in which nothing is and from which nothing stays", () =>
      Effect.gen(function* () {
        const outside = yield* temporaryDirectory
        yield* writeFiles(outside, { secret: "s" })
        const name = `/tmp/left-${process.pid}`
        const { output } = yield* walled(`cat ${outside}/secret; touch ${name} && ls ${name}`)
        expect(output).toContain("No such file or directory")
        expect(output).toContain(name)
        expect(existsSync(name)).toBe(false)
      }),
    )

    it.scoped("sees no network where it is not allowed, and the host's where it is", () =>
      Effect.gen(function* () {
        const server = createServer((socket) => socket.end("hello\n"))
        yield* Effect.acquireRelease(
          Effect.promise(() => new Promise<void>((done) => server.listen(0, "127.0.0.1", done))),
          () => Effect.promise(() => new Promise<void>((done) => server.close(() => done()))),
        )
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const ask = `cat < /dev/tcp/127.0.0.1/${port}`
        expect((yield* walled(ask)).output).toContain("refused")
        expect((yield* walled(ask, { network: true })).output).toBe("hello")
      }),
    )

    it.scoped("sees only its own processes, and what it starts ends with it, also what left its group", () =>
      Effect.gen(function* () {
        const { output, root } = yield* walled(
          `(setsid bash -c 'sleep 600; echo late > late' >/dev/null 2>&1 &); ls /proc | grep -c '^[0-9]'; kill -0 ${process.pid} 2>&1`,
        )
        expect(Number(output.split("\n")[0])).toBeLessThan(15)
        expect(output).toContain("No such process")
        expect(existsSync(join(root, "late"))).toBe(false)
      }),
    )

    it.scoped("has no capabilities and cannot get new privileges, nor undo the walls", () =>
      Effect.gen(function* () {
        const { output } = yield* walled(
          "grep -E 'CapEff|NoNewPrivs' /proc/self/status; mount -o remount,rw / 2>/dev/null && echo lifted; unshare -Urm mount -o remount,bind,rw / 2>/dev/null && touch /lifted && echo lifted",
        )
        expect(output).toMatch(/CapEff:\s+0+\nNoNewPrivs:\s+1$/)
      }),
    )

    it.scoped("has no devices but a few, and no switches of the kernel", () =>
      Effect.gen(function* () {
        const { output } = yield* walled(
          "for f in /dev/* /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper; do [ -L $f ] || [ -d $f ] || { [ -w $f ] && echo $f; }; done; echo x > /dev/null; head -c 3 /dev/zero | wc -c",
        )
        const writable = output.split("\n")
        expect(writable.pop()).toBe("3")
        const harmless = ["full", "null", "ptmx", "random", "tty", "urandom", "zero", "console"].map(
          (name) => `/dev/${name}`,
        )
        expect(writable.filter((path) => !harmless.includes(path))).toEqual([])
      }),
    )

    it.scoped("does not change the settings of the repository that git would execute", () =>
      Effect.gen(function* () {
        const files = { ".git/config": "[core]\n", ".git/hooks/pre-commit": "", ".git/HEAD": "ref: refs/heads/main\n" }
        const { output, root } = yield* walled(
          "echo x > .git/config; echo x > .git/hooks/pre-commit; mv .git/config c; rm -r .git/hooks; echo y > .git/HEAD; echo end",
          {},
          files,
        )
        expect(output).toContain("end")
        expect(readFileSync(join(root, ".git/config"), "utf8")).toBe("[core]\n")
        expect(readFileSync(join(root, ".git/hooks/pre-commit"), "utf8")).toBe("")
        expect(readFileSync(join(root, ".git/HEAD"), "utf8")).toBe("y\n")
      }),
    )

    it.scoped("does not see the node's own files, wherever they are", () =>
      Effect.gen(function* () {
        const outside = yield* temporaryDirectory
        const { root } = yield* workspaceWith({ "data/super-pi.db": "conversations", "super-pi.db": "more" })
        yield* writeFiles(outside, { "settings.json": "{}" })
        const elsewhere = join(import.meta.dirname, "../../docs")
        // What lies in a hidden directory may be named besides.
        const within = [join(root, "data/super-pi.db"), join(outside, "settings.json")]
        const hidden = [join(root, "data"), join(root, "super-pi.db"), outside, elsewhere, ...within]
        const ran = yield* inside(
          engine,
          policyOf(root, { ...sandbox, hidden }),
          `cat data/* super-pi.db ${outside}/*; ls data ${elsewhere}`,
        )
        expect(ran.output).not.toContain("conversations")
        expect(ran.output).not.toContain("more")
        expect(ran.output).not.toContain("{}")
        expect(ran.output).not.toContain("README")
        expect(readFileSync(join(root, "data/super-pi.db"), "utf8")).toBe("conversations")
      }),
    )

    it.scoped("sees a workspace that lies in a hidden directory, but not what is hidden within it", () =>
      Effect.gen(function* () {
        const { root } = yield* workspaceWith({ "mine/a": "seen", "mine/secret": "unseen", other: "unseen" })
        const mine = join(root, "mine")
        const ran = yield* inside(
          engine,
          policyOf(mine, { ...sandbox, hidden: [root, join(mine, "secret")] }),
          "cat a; cat secret ../other 2>/dev/null; true",
        )
        expect(ran.output.trim()).toBe("seen")
      }),
    )

    it.scoped("works in a directory with blanks and quotes in its name, and through the output devices", () =>
      Effect.gen(function* () {
        const { root } = yield* workspaceWith({ 'it\'s a "place" $HOME/x': "x" })
        const policy = policyOf(join(root, 'it\'s a "place" $HOME'), sandbox)
        const ran = yield* inside(engine, policy, "cat x; echo out > /dev/stdout; echo err > /dev/stderr; exit 7")
        expect(ran).toEqual({ code: 7, output: "xout\nerr" })
      }),
    )

    it.scoped("is held to its limits, and says by its exit code what signal ended it", () =>
      Effect.gen(function* () {
        const { root } = yield* workspaceWith()
        const limits = { ...defaultSandboxLimits, fileBytes: 1024 * 1024, processes: 64 }
        const policy = { ...policyOf(root, sandbox), limits }
        const ran = yield* inside(engine, policy, "head -c 3000000 /dev/zero > large; ulimit -u; kill -9 $$")
        expect(ran.output).toContain("64")
        expect(ran.code).toBe(137)
        expect(readFileSync(join(root, "large")).length).toBeLessThanOrEqual(1024 * 1024)
      }),
    )

    it.scoped("ends whole when it is stopped", () =>
      Effect.gen(function* () {
        const { root } = yield* workspaceWith()
        yield* Effect.promise(async () => {
          let heard: () => void = () => undefined
          const ready = new Promise<void>((done) => {
            heard = done
          })
          const group = await ProcessGroup.start({
            command: "trap '' TERM; (setsid sleep 600 &); echo ready; while :; do sleep 1; done",
            cwd: root,
            env: { PATH: process.env.PATH ?? "" },
            shell: "bash",
            prefix: sandboxPrefix(engine, policyOf(root, sandbox)),
            onOutput: () => {
              heard()
              return undefined
            },
          })
          await ready
          await group.stop(100)
          await group.exit
          // The end of a table of processes is the end of all in it.
          writeFileSync(join(root, "done"), "")
        })
        expect(existsSync(join(root, "done"))).toBe(true)
      }),
    )
  })
}

describe("the command line of bubblewrap", () => {
  const policy: SandboxPolicy = {
    root: "/w",
    writable: ["/more"],
    readOnly: ["/w/.git/config"],
    hidden: [
      { path: "/run", directory: true },
      { path: "/w/data", directory: true },
      { path: "/home/p/.netrc", directory: false },
    ],
    shown: ["/run/systemd/resolve"],
    network: false,
    user: { uid: 1000, gid: 1000 },
    limits: defaultSandboxLimits,
  }
  const words = sandboxPrefix("bwrap", policy).join(" ")

  it("binds the system read-only, then hides, then opens the workspace, then closes what is in it", () => {
    const order = [
      "--ro-bind / /",
      "--tmpfs /tmp",
      "--tmpfs /run",
      "--ro-bind-try /run/systemd/resolve",
      "--bind /w /w",
      "--bind /more /more",
      "--tmpfs /w/data",
      "--ro-bind /w/.git/config",
      "--chdir /w",
    ]
    const places = order.map((part) => words.indexOf(part))
    expect(places.every((at) => at > 0)).toBe(true)
    expect([...places].sort((a, b) => a - b)).toEqual(places)
  })

  it("takes away the network, capabilities and other processes, and ends with the node", () => {
    for (const part of ["--unshare-net", "--cap-drop ALL", "--unshare-pid", "--die-with-parent", "--new-session"]) {
      expect(words).toContain(part)
    }
    expect(sandboxPrefix("bwrap", { ...policy, network: true })).not.toContain("--unshare-net")
  })
})

describe("a host without a sandbox", () => {
  const nothing = () =>
    Promise.resolve({
      engine: null,
      engines: [{ engine: "bwrap" as const, works: false, detail: "bwrap is not installed" }],
    })

  it.effect("runs commands as they are with auto, and refuses them with required, with the reason", () =>
    Effect.promise(async () => {
      expect(await commandWalls("/tmp", sandbox, nothing)).toEqual({ walls: null })
      expect(await commandWalls("/tmp", { ...sandbox, mode: "required" }, nothing)).toEqual({
        refused: expect.stringContaining("bwrap is not installed"),
      })
    }),
  )

  it.effect("is told by the doctor why each engine does not work", () =>
    Effect.promise(async () => {
      const found = await probeSandbox({ PATH: "/nowhere" })
      expect(found.engine).toBe(null)
      expect(found.engines.map(({ detail }) => detail)).toEqual([
        "bwrap is not installed (package bubblewrap)",
        "unshare is not installed (package util-linux)",
      ])
    }),
  )
})

layer(BuiltinTools.standalone, { excludeTestServices: true })("the tool bash", (it) => {
  it.scoped("runs inside walls where its workspace has them, without the node's secrets in its environment", () =>
    Effect.gen(function* () {
      const { root } = yield* workspaceWith()
      const workspace: Workspace = { root, confined: true, sandbox }
      process.env.SUPER_PI_TEST_SECRET = "hush"
      const result = yield* call("bash", { command: "touch /usr/inside 2>/dev/null || echo walled; env" }, workspace)
      delete process.env.SUPER_PI_TEST_SECRET
      expect(outputOf(result)).not.toContain("hush")
      if (report.engine !== null) expect(outputOf(result)).toContain("walled")
    }),
  )
})
