/**
 * What remote callers may choose of a conversation.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AgentDocument } from "../../src/domain/document.ts"
import { callerRules, type RemoteRules, remoteAgent } from "../../src/protocols/remote.ts"

const own: RemoteRules = { ownMode: "auto" }
const limited: RemoteRules = { ownMode: "auto", remoteDefaultMode: "plan", remoteMaxMode: "accept-edits" }

const chosen = (agent: AgentDocument, rules: RemoteRules, opens: boolean) =>
  Effect.runSync(Effect.either(remoteAgent(agent, rules, opens)))

describe("a remote caller", () => {
  it.each([true, false])("sets no override of the settings (opening: %s)", (opens) => {
    const agent = { settingsOverride: { permissions: { allow: ["*"] } } }
    expect(chosen(agent, limited, opens)).toMatchObject({
      _tag: "Left",
      left: { _tag: "InvalidRequest", path: "agent.settingsOverride" },
    })
  })

  it("changes nothing by saying nothing where nothing is configured", () => {
    expect(chosen({ effort: "low" }, own, true)).toMatchObject({ _tag: "Right", right: { effort: "low" } })
    expect(chosen({ effort: "low" }, own, false)).not.toHaveProperty("right.mode")
    expect(chosen({}, own, true)).not.toHaveProperty("right.settingsOverride")
  })

  it("only tightens the mode where nothing is configured", () => {
    expect(chosen({ mode: "plan" }, own, true)).toHaveProperty("right.mode", "plan")
    expect(chosen({ mode: "auto" }, { ownMode: "accept-edits" }, true)).toHaveProperty("right.mode", "accept-edits")
    expect(chosen({ mode: "auto" }, { ownMode: "accept-edits" }, false)).toHaveProperty("right.mode", "accept-edits")
  })

  it("opens with the default of remote callers, and asks for no more than their highest mode", () => {
    expect(chosen({}, limited, true)).toHaveProperty("right.mode", "plan")
    expect(chosen({ mode: "auto" }, limited, true)).toHaveProperty("right.mode", "accept-edits")
    expect(chosen({ mode: "auto" }, limited, false)).toHaveProperty("right.mode", "accept-edits")
    expect(chosen({ effort: "low" }, limited, false)).not.toHaveProperty("right.mode")
  })

  it("leaves its ceiling with a conversation that it opens", () => {
    expect(chosen({}, limited, true)).toHaveProperty(
      "right.settingsOverride.permissions.maxExecutionMode",
      "accept-edits",
    )
    expect(chosen({}, limited, false)).not.toHaveProperty("right.settingsOverride")
  })
})

describe("the rules of a server", () => {
  it("let callers edit and no more, unless who starts it or the settings say so; the settings' highest mode holds for both", () => {
    const modes = (mode: Parameters<typeof callerRules>[0], settings?: Parameters<typeof callerRules>[1]) => {
      const { remoteDefaultMode, remoteMaxMode } = callerRules(mode, settings)
      return [remoteDefaultMode, remoteMaxMode]
    }
    expect(modes(undefined)).toEqual(["accept-edits", "accept-edits"])
    expect(modes("auto")).toEqual(["auto", "auto"])
    expect(modes("plan")).toEqual(["plan", "plan"])
    expect(modes(undefined, { remoteMaxMode: "auto" })).toEqual(["accept-edits", "auto"])
    expect(modes(undefined, { remoteDefaultMode: "auto" })).toEqual(["auto", "auto"])
    expect(modes("auto", { remoteMaxMode: "plan" })).toEqual(["plan", "plan"])
    expect(modes("plan", { remoteDefaultMode: "auto", remoteMaxMode: "auto" })).toEqual(["plan", "auto"])
  })
})
