/**
 * Rules of work that hold while a tool is offered, and how they are put together. Pure: the same tools and options give the same text, in
 * the same order, so that the provider's prompt cache stays warm.
 */

/** One rule: it counts while every tool of `all` is offered, and none of `none`. */
export interface ToolRule {
  /** What options override it by: the tool that it is about first. */
  readonly id: string
  readonly all: ReadonlyArray<string>
  readonly none?: ReadonlyArray<string>
  readonly text: string
}

/** The rules of the tools that come with Super-Pi, in the order in which they are given. */
export const toolRules: ReadonlyArray<ToolRule> = [
  {
    id: "read",
    all: ["read"],
    text: "read: look at a file before you change it or speak of it; read the part that matters, not all of it.",
  },
  {
    id: "edit",
    all: ["edit"],
    text: "edit: for changes in a file that exists; take enough surrounding text that the place is unique.",
  },
  { id: "write", all: ["write", "edit"], text: "write: for new files, or where most of a file changes; else edit." },
  { id: "write-only", all: ["write"], none: ["edit"], text: "write: it replaces the whole file; read it first." },
  {
    id: "bash",
    all: ["bash"],
    text: "bash: for builds, tests and version control; no interactive programs, no servers in the foreground; quote paths.",
  },
  {
    id: "search-over-bash",
    all: ["bash", "grep"],
    text: "grep, find and ls rather than their bash counterparts: their output is bounded and skips ignored files.",
  },
  {
    id: "grep",
    all: ["grep"],
    none: ["bash"],
    text: "grep: narrow it with a glob or a directory before you read what it found.",
  },
  {
    id: "artifact_put",
    all: ["artifact_put"],
    text: "artifact_put: for results that must outlive the workspace; give each a telling name.",
  },
  {
    id: "todo",
    all: ["todo"],
    text: "todo: for work of three steps or more; one item in progress, done as soon as it is done.",
  },
  {
    id: "delegate_subagent",
    all: ["delegate_subagent"],
    text: "delegate_subagent: for independent pieces of work, all of them in one call; say everything that a child has to know.",
  },
  {
    id: "ask_question",
    all: ["ask_question"],
    text: "ask_question: only where the answer changes what you do and you cannot find it out yourself; offer choices.",
  },
  {
    id: "handoff",
    all: ["handoff"],
    text: "handoff: when the goal changes; its summary is all that the next conversation knows.",
  },
  {
    id: "structured_output",
    all: ["structured_output"],
    text: "structured_output: once, as your last call, when everything is known.",
  },
]

/** What options change: null removes a rule, a text replaces it or, under a name that no rule has, is the rule of that tool. */
export type RuleOverrides = Readonly<Record<string, string | null>>

const applies = ({ all, none = [] }: ToolRule, tools: ReadonlySet<string>): boolean =>
  all.every((name) => tools.has(name)) && !none.some((name) => tools.has(name))

/**
 * The text of the section, or null where no rule applies. Own rules come behind the built-in ones in the order of their names; `add`
 * (which holds whatever is offered) comes last, in its own order.
 */
export const rulesText = (
  offered: ReadonlyArray<string>,
  overrides: RuleOverrides = {},
  add: ReadonlyArray<string> = [],
): string | null => {
  const tools = new Set(offered)
  const known = new Set(toolRules.map((rule) => rule.id))
  const builtin = toolRules
    .filter((rule) => applies(rule, tools))
    .map((rule) => (Object.hasOwn(overrides, rule.id) ? overrides[rule.id] : rule.text))
  const own = Object.keys(overrides)
    .filter((name) => !known.has(name) && tools.has(name))
    .sort()
    .map((name) => overrides[name])
  const lines = [...builtin, ...own, ...add].flatMap((line) => {
    const said = line?.trim() ?? ""
    return said === "" ? [] : [`- ${said.replace(/\s*\n\s*/g, "\n  ")}`]
  })
  return lines.length === 0 ? null : lines.join("\n")
}
