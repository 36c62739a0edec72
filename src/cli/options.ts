/**
 * The options of the command line, each defined once and shared by the commands that take it.
 */
import { choice, flag, integer, type Option, text } from "./arguments.ts"

export const prompt: Option<string> = {
  long: "prompt",
  short: "p",
  value: "PROMPT",
  valueOptional: true,
  summary: "Ask this once, print the answer and leave; without a value the prompt is read from stdin",
  read: (raw) => ({ ok: true, value: raw }),
}

export const outputFormat = choice(
  "output-format",
  ["text", "json", "stream-json"],
  "text: the answer; json: one result object; stream-json: every event, then the result",
)

export const inputFormat = choice(
  "input-format",
  ["text", "stream-json"],
  'stream-json: one {"prompt": …} per line on stdin, one result line for each',
)

export const continueLatest = flag("continue", "Go on with the most recent conversation", "c")

export const conversation = integer("conversation", "ID", "Go on with this conversation", {
  min: 1,
  max: Number.MAX_SAFE_INTEGER,
  what: "a conversation number (see: super-pi session list)",
})

export const model = text("model", "MODEL", "Model to ask (see: super-pi models)", "m")

export const effort = choice(
  "effort",
  ["none", "minimal", "low", "medium", "high", "max"],
  "How hard the model should think",
)

export const mode = choice("mode", ["plan", "accept-edits", "auto"], "What tools may do")

export const harness = text("harness", "HARNESS", "What it is to be (see: super-pi harnesses; default: super-pi-code)")

export const agent = text(
  "agent",
  "HARNESS",
  "Deprecated: --harness; self is super-pi-code, research is super-pi-planner",
)

export const cwd = text(
  "cwd",
  "DIRECTORY",
  "Workspace: where file and shell tools act (default: the current directory)",
)

export const db = text(
  "db",
  "PATH",
  "Database file (default: SUPER_PI_SQLITE_PATH, else super-pi.db in the data directory)",
)

export const json = flag("json", "Print JSON")

export const revoke = flag("revoke", "Takes the approval back")

export const get = text("get", "NAME", "Write the content of this one to stdout")

export const all = flag("all", "Also what runs right now")

export const limit = integer("limit", "N", "At most this many (1 to 1000, default 100)", {
  min: 1,
  max: 1000,
  what: "a number from 1 to 1000",
})

export const instructions = text("instructions", "TEXT", "What the summary should look at above all")

export const at = integer(
  "at",
  "ENTRY",
  "The last entry to take along (default: the newest; session show has the numbers)",
  {
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    what: "an entry number (see: super-pi session show)",
  },
)

export const handoff = text("handoff", "TEXT", "A note that the new context starts from (default: nothing)")

export const list = flag("list", "List what can be undone; change nothing")

export const force = flag("force", "Do it although something is lost by it")

export const to = integer("to", "VERSION", "Go to this schema version (default: the newest; 0 removes everything)", {
  min: 0,
  max: 1_000_000,
  what: "a schema version (see: super-pi migrate --status)",
})

export const migrationStatus = flag("status", "Say which version it has and what is pending; change nothing")

export const watch = flag("watch", "Keep showing it until Ctrl-C")

export const noTui = flag("no-tui", "Chat line by line, also where a super-pi-tui is on the PATH")

export const noBrowser = flag("no-browser", "Only print the address; open no browser")

export const unix = text("unix", "PATH", "Serve on a unix socket (file mode 0600)")

export const host = text("host", "ADDRESS", "Listen here (default 127.0.0.1; anything but loopback needs a token)")

export const port = integer("port", "PORT", "Serve HTTP on this port (default 4000; 0 takes a free one)", {
  min: 0,
  max: 65_535,
  what: "a port from 0 to 65535",
})

export const url = text(
  "url",
  "URL",
  "The gateway of a node (default: SUPER_PI_GATEWAY_URL, else the database is read)",
)

export const verbose = flag("verbose", "Also log text and thinking as they stream")

export const stdio = flag("stdio", "Serve on stdin and stdout")

export const jsonSchema = text(
  "json-schema",
  "FILE",
  "Answer with a value that fits this JSON Schema (a file, or the schema itself), and print the value only",
)

/** What a conversation runs with. */
export const agentOptions: ReadonlyArray<Option<unknown>> = [
  continueLatest,
  conversation,
  harness,
  agent,
  model,
  effort,
  mode,
  cwd,
  db,
]

/** What a single prompt takes besides. */
export const formatOptions: ReadonlyArray<Option<unknown>> = [outputFormat, inputFormat, jsonSchema]
