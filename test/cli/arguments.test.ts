/**
 * The argument parser and the table of commands.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Command, flag, integer, type Parsed, parse, text } from "../../src/cli/arguments.ts"
import { superPi } from "../../src/cli/commands.ts"
import { helpPage } from "../../src/cli/help.ts"
import * as option from "../../src/cli/options.ts"

const faultOf = (argv: ReadonlyArray<string>): string => {
  const parsed = parse(superPi, argv)
  if (parsed.kind !== "fault") throw new Error(`expected a fault, got ${parsed.kind}`)
  return parsed.message
}

const invocationOf = (argv: ReadonlyArray<string>) => {
  const parsed = parse(superPi, argv)
  if (parsed.kind !== "invocation") throw new Error(parsed.kind === "fault" ? parsed.message : parsed.kind)
  return parsed.invocation
}

/** Every command with its path, the root included. */
const everyCommand = (command: Command, path: ReadonlyArray<string> = []): Array<[Command, ReadonlyArray<string>]> => [
  [command, path],
  ...(command.commands ?? []).flatMap((child) => everyCommand(child, [...path, child.name])),
]

describe("the command line", () => {
  it("is the root command without words", () => {
    expect(invocationOf([]).path).toEqual(["super-pi"])
  })

  it("takes a prompt after run, before it, and with -p", () => {
    expect(invocationOf(["run", "explain", "this"]).words).toEqual(["explain", "this"])
    expect(invocationOf(["-p", "hi there"]).get(option.prompt)).toBe("hi there")
    expect(invocationOf(["--model", "mock/echo", "run", "hi"]).get(option.model)).toBe("mock/echo")
    expect(invocationOf(["run", "hi", "--model=mock/echo"]).get(option.model)).toBe("mock/echo")
  })

  it("reads a prompt that looks like a list item or a command as a prompt", () => {
    expect(invocationOf(["-p", "- first"]).get(option.prompt)).toBe("- first")
    expect(invocationOf(["-p", "chat"]).get(option.prompt)).toBe("chat")
    expect(invocationOf(["run", "--", "--help"]).words).toEqual(["--help"])
  })

  it("takes -p without a value as a prompt from stdin", () => {
    expect(invocationOf(["-p"]).get(option.prompt)).toBe("")
    expect(invocationOf(["-p", "--model", "mock/echo"]).get(option.prompt)).toBe("")
  })

  it("bundles short flags and takes a value right behind the last", () => {
    const bundled = invocationOf(["-cp", "go on"])
    expect([bundled.get(option.continueLatest), bundled.get(option.prompt)]).toEqual([true, "go on"])
    expect(invocationOf(["-mmock/echo"]).get(option.model)).toBe("mock/echo")
  })

  it("finds commands of commands", () => {
    const shown = invocationOf(["session", "--json", "show", "12"])
    expect([shown.path, shown.words, shown.get(option.json)]).toEqual([["super-pi", "session", "show"], ["12"], true])
  })

  it("names an unknown option and the nearest one", () => {
    expect(faultOf(["run", "hi", "--modle", "x"])).toBe(
      "unknown option --modle; did you mean --model? See: super-pi run --help",
    )
    expect(faultOf(["session", "list", "--jsn"])).toContain("did you mean --json?")
  })

  it("names an unknown command and the nearest one", () => {
    expect(faultOf(["sesion"])).toBe('unknown command "sesion"; did you mean "session"? See: super-pi --help')
    expect(faultOf(["session", "lst"])).toBe('unknown command "lst"; did you mean "list"? See: super-pi session --help')
    expect(faultOf(["what is this?"])).toContain('super-pi run "…"')
  })

  it("says that an option belongs to another command", () => {
    expect(faultOf(["session", "list", "--effort", "high"])).toBe(
      '--effort does not apply to "super-pi session list". See: super-pi session list --help',
    )
  })

  it("says what a value was expected to be", () => {
    expect(faultOf(["run", "hi", "--effort", "huge"])).toBe(
      '--effort: expected one of none, minimal, low, medium, high, max, got "huge"',
    )
    expect(faultOf(["--conversation", "abc"])).toContain("--conversation: expected a conversation number")
    expect(faultOf(["--conversation", "0"])).toContain('got "0"')
    expect(faultOf(["run", "--db", "--json", "x"])).toContain("--db needs a value")
    expect(faultOf(["run", "--db="])).toContain('--db: expected a path, got ""')
    expect(faultOf(["tree", "--watch=yes"])).toContain('--watch takes no value, got "yes"')
  })

  it("says which argument is missing or too many", () => {
    expect(faultOf(["session", "show"])).toContain("needs ID")
    expect(faultOf(["session", "show", "1", "2"])).toContain('unexpected argument "2"')
    expect(faultOf(["session"])).toMatch(/which super-pi session\? list, show, export, (\w+, )*rm\. See:/)
  })

  it("has --help and --version on every command", () => {
    for (const [command, path] of everyCommand(superPi)) {
      const help = parse(superPi, [...path, "--help"])
      expect(help.kind).toBe("help")
      if (help.kind === "help") expect(helpPage(help.command, help.path)).toContain(command.summary)
      expect(parse(superPi, [...path, "--version"]).kind).toBe("version")
      expect(parse(superPi, ["help", ...path]).kind).toBe("help")
    }
  })

  it("keeps hidden commands to itself, and runs them", () => {
    expect(invocationOf(["start"]).path).toEqual(["super-pi", "start"])
    expect(helpPage(superPi, ["super-pi"])).not.toMatch(/^ *start\b/m)
    expect(faultOf(["strat"])).not.toContain("start")
  })

  it("shows every option in the help of its command", () => {
    for (const [command, path] of everyCommand(superPi)) {
      const page = helpPage(command, path)
      for (const one of command.options) expect(page).toContain(`--${one.long}`)
    }
  })
})

describe("the parser, whatever the words", () => {
  const small: Command = {
    name: "tool",
    summary: "a tool",
    options: [
      flag("all", "all", "a"),
      text("name", "NAME", "a name", "n"),
      integer("size", "N", "a size", { min: 0, max: 9, what: "a digit" }),
    ],
    positionals: [{ name: "FILE", summary: "a file", required: false, rest: true }],
    load: async () => ({ main: async () => 0 }),
  }
  const [all, name, size] = small.options

  const word = fc.oneof(
    fc.constantFrom(
      "--all",
      "-a",
      "--name",
      "-n",
      "--size",
      "--",
      "-",
      "",
      "run",
      "session",
      "list",
      "help",
      "--help",
      "-an",
      "--name=",
      "-x",
    ),
    fc.string(),
  )

  it("answers and never throws", () => {
    fc.assert(
      fc.property(fc.array(word), (argv) => {
        for (const root of [small, superPi]) {
          const parsed: Parsed = parse(root, argv)
          expect(["invocation", "help", "version", "fault"]).toContain(parsed.kind)
          if (parsed.kind === "fault") expect(parsed.message.length).toBeGreaterThan(0)
        }
      }),
    )
  })

  it("gives back what was written, in any order of options and words", () => {
    const plain = fc.string({ minLength: 1 }).filter((value) => !value.startsWith("-"))
    fc.assert(
      fc.property(
        fc.record({
          all: fc.boolean(),
          name: fc.option(fc.string({ minLength: 1 })),
          size: fc.option(fc.nat(9)),
          words: fc.array(plain),
        }),
        fc.infiniteStream(fc.nat()),
        (wanted, random) => {
          const groups = [
            ...(wanted.all ? [["-a"]] : []),
            ...(wanted.name === null ? [] : [[`--name=${wanted.name}`]]),
            ...(wanted.size === null ? [] : [["--size", String(wanted.size)]]),
          ]
          const argv = wanted.words[0] === "help" ? ["--", ...wanted.words] : [...wanted.words]
          for (const group of groups) {
            const end = argv.indexOf("--")
            argv.splice((random.next().value ?? 0) % ((end < 0 ? argv.length : end) + 1), 0, ...group)
          }
          // A group that was put between another option and its value would be a different command line.
          fc.pre(wanted.size === null || argv[argv.indexOf("--size") + 1] === String(wanted.size))
          fc.pre(argv[0] !== "help")
          const parsed = parse(small, argv)
          if (parsed.kind !== "invocation") throw new Error(JSON.stringify(parsed))
          const { get, words } = parsed.invocation
          expect(words).toEqual(wanted.words)
          if (all !== undefined) expect(get(all)).toBe(wanted.all ? true : undefined)
          if (name !== undefined) expect(get(name)).toBe(wanted.name ?? undefined)
          if (size !== undefined) expect(get(size)).toBe(wanted.size ?? undefined)
        },
      ),
    )
  })

  it("names every unknown long option", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z][a-z-]{0,12}$/), (unknown) => {
        fc.pre(!["all", "name", "size", "help", "version"].includes(unknown))
        const parsed = parse(small, [`--${unknown}`])
        expect(parsed.kind).toBe("fault")
        if (parsed.kind === "fault") expect(parsed.message).toContain(`unknown option --${unknown}; did you mean --`)
      }),
    )
  })
})
