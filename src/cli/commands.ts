/**
 * The table of commands. Their code is loaded when one is asked for, so that the start of each costs only what it needs. Long because it is
 * one table.
 */
import type { Command } from "./arguments.ts"
import * as option from "./options.ts"

const conversationId = { name: "ID", summary: "the conversation's number", required: true }

const session: Command = {
  name: "session",
  summary: "Durable conversations: list, show, export, remove",
  options: [],
  commands: [
    {
      name: "list",
      summary: "Lists conversations, the most recent first",
      options: [option.db, option.json, option.limit],
      load: () => import("./session-list.ts"),
    },
    {
      name: "show",
      summary: "Shows a conversation as it reads",
      positionals: [conversationId],
      options: [option.db, option.json],
      load: () => import("./session-show.ts"),
    },
    {
      name: "export",
      summary: "Writes a conversation to stdout, as Markdown or as JSON with every record",
      positionals: [conversationId],
      options: [option.db, option.json],
      load: () => import("./session-export.ts"),
    },
    {
      name: "compact",
      summary: "Makes a conversation's context short: what is older becomes a summary",
      positionals: [conversationId],
      options: [option.instructions, option.db, option.json],
      examples: ['super-pi session compact 12 --instructions "keep the failing test names"'],
      load: () => import("./session-compact.ts"),
    },
    {
      name: "fork",
      summary: "Begins a conversation of its own from an entry of another",
      positionals: [conversationId],
      options: [option.at, option.db, option.json],
      load: () => import("./session-fork.ts"),
    },
    {
      name: "reset",
      summary: "Begins a new context; what came before stays in the transcript and is not sent any more",
      positionals: [conversationId],
      options: [option.handoff, option.db, option.json],
      load: () => import("./session-reset.ts"),
    },
    {
      name: "artifacts",
      summary: "Lists what a conversation keeps under names, or writes one of it to stdout",
      positionals: [conversationId],
      options: [option.db, option.json, option.get],
      load: () => import("./session-artifacts.ts"),
    },
    {
      name: "rm",
      summary: "Removes an idle conversation for good",
      positionals: [conversationId],
      options: [option.db, option.json],
      load: () => import("./session-rm.ts"),
    },
  ],
  examples: ["super-pi session list", "super-pi session export 12 --json > conversation.json"],
}

const effects: Command = {
  name: "effects",
  summary: "Effects of tools that may or may not have happened",
  options: [option.all, option.limit, option.json, option.db],
  load: () => import("./effects.ts"),
  commands: [
    {
      name: "list",
      summary: "Lists them, the newest first",
      options: [option.all, option.limit, option.json, option.db],
      load: () => import("./effects.ts"),
    },
    {
      name: "settle",
      summary: "Records what became of one: happened, not-happened or ignore",
      positionals: [
        { name: "ID", summary: "the call's number", required: true },
        { name: "ANSWER", summary: "happened, not-happened or ignore", required: true },
      ],
      options: [option.json, option.db],
      load: () => import("./effects-settle.ts"),
    },
  ],
  examples: ["super-pi effects", "super-pi effects settle 12 happened"],
}

const questions: Command = {
  name: "questions",
  summary: "What conversations ask a person, and nobody has answered yet",
  options: [option.json, option.db],
  load: () => import("./questions.ts"),
  commands: [
    {
      name: "list",
      summary: "Lists them, the oldest first",
      options: [option.json, option.db],
      load: () => import("./questions.ts"),
    },
    {
      name: "answer",
      summary: "Answers one: by the number or name of an option, or with a text where one is asked for",
      positionals: [
        { name: "ID", summary: "the question's number", required: true },
        { name: "OPTION", summary: "an answer for each thing that it asks", required: true, rest: true },
      ],
      options: [option.json, option.db],
      load: () => import("./questions-answer.ts"),
    },
  ],
  examples: ["super-pi questions", "super-pi questions answer 12 allow_once", "super-pi questions answer 13 2"],
}

const jobId = { name: "ID", summary: "the job's number", required: true }
const queueName = { name: "NAME", summary: "the queue's name", required: true }
const changeQueue = () => import("./queue-change.ts")

const queue: Command = {
  name: "queue",
  summary: "Background jobs: list, show, pause, retry, cancel",
  options: [],
  commands: [
    {
      name: "list",
      summary: "Lists the queues and their newest jobs",
      options: [option.limit, option.json, option.db],
      load: () => import("./queue-list.ts"),
    },
    {
      name: "show",
      summary: "Shows a job with its failures",
      positionals: [jobId],
      options: [option.json, option.db],
      load: () => import("./queue-show.ts"),
    },
    {
      name: "pause",
      summary: "Lets running jobs end and starts no other, also after a restart",
      positionals: [queueName],
      options: [option.json, option.db],
      load: changeQueue,
    },
    {
      name: "resume",
      summary: "Takes a paused queue up again",
      positionals: [queueName],
      options: [option.json, option.db],
      load: changeQueue,
    },
    {
      name: "retry",
      summary: "Runs a job now: one that waits, or one that has ended once more",
      positionals: [jobId],
      options: [option.json, option.db],
      load: changeQueue,
    },
    {
      name: "cancel",
      summary: "Ends a job for good; a running one is interrupted",
      positionals: [jobId],
      options: [option.json, option.db],
      load: changeQueue,
    },
    {
      name: "prune",
      summary: "Deletes jobs that have ended",
      options: [option.json, option.db],
      load: changeQueue,
    },
  ],
  examples: ["super-pi queue list", "super-pi queue pause verification", "super-pi queue retry 12"],
}

const taskId = { name: "ID", summary: "the task's number", required: true }
const changeTask = () => import("./task-change.ts")

const tasks: Command = {
  name: "tasks",
  summary: "Durable workflows: list, show, retry, abort, discard",
  options: [],
  commands: [
    {
      name: "list",
      summary: "Lists the tasks that have not ended, as a tree; with --all those of conversations too",
      options: [option.all, option.json, option.db],
      load: () => import("./tasks.ts"),
    },
    {
      name: "show",
      summary: "Shows a task with its checkpoint and what it owns",
      positionals: [taskId],
      options: [option.json, option.db],
      load: () => import("./task-show.ts"),
    },
    {
      name: "retry",
      summary: "Runs a parked task again",
      positionals: [taskId],
      options: [option.json, option.db],
      load: changeTask,
    },
    {
      name: "abort",
      summary: "Aborts a task and what it owns; with --all also through background work",
      positionals: [taskId],
      options: [option.all, option.json, option.db],
      load: changeTask,
    },
    {
      name: "discard",
      summary: "Gives up a task whose code is missing",
      positionals: [taskId],
      options: [option.json, option.db],
      load: changeTask,
    },
  ],
  examples: ["super-pi tasks list", "super-pi tasks retry 12"],
}

const serverName = { name: "NAME", summary: "the server's name", required: true }
const changeMcp = () => import("./mcp-change.ts")

/** MCP servers whose tools are used. */
const mcpClient: ReadonlyArray<Command> = [
  {
    name: "add",
    summary: "Adds an MCP server whose tools are used: a command with its arguments, or a URL",
    details: ["", "Arguments that begin with a dash stand behind --."],
    positionals: [
      serverName,
      { name: "TARGET", summary: "a command, or an http(s) URL", required: true },
      { name: "ARGS", summary: "the command's arguments", required: false, rest: true },
    ],
    options: [option.json, option.db],
    examples: ["super-pi mcp add docs https://mcp.example.com/mcp", "super-pi mcp add files npx -- -y some-server ."],
    load: changeMcp,
  },
  {
    name: "remove",
    summary: "Removes one",
    positionals: [serverName],
    options: [option.json, option.db],
    load: changeMcp,
  },
  {
    name: "enable",
    summary: "Starts one again that was disabled",
    positionals: [serverName],
    options: [option.json, option.db],
    load: changeMcp,
  },
  {
    name: "disable",
    summary: "Keeps one and does not start it",
    positionals: [serverName],
    options: [option.json, option.db],
    load: changeMcp,
  },
  {
    name: "restart",
    summary: "Has the running node connect to one anew",
    positionals: [serverName],
    options: [option.json, option.db],
    load: changeMcp,
  },
  {
    name: "list",
    summary: "Shows the MCP servers with their state and tools",
    options: [option.json, option.db],
    load: () => import("./mcp-list.ts"),
  },
  {
    name: "login",
    summary: "Logs in at one by OAuth",
    positionals: [serverName],
    options: [option.noBrowser, option.db],
    load: () => import("./mcp-login.ts"),
  },
  {
    name: "logout",
    summary: "Forgets the login at one",
    positionals: [serverName],
    options: [option.db],
    load: () => import("./mcp-login.ts"),
  },
]

/** The root command. */
export const superPi: Command = {
  name: "super-pi",
  summary: "A durable, fault-tolerant agent",
  details: [
    "",
    "Without a command: a chat in a terminal; in a pipe, one prompt from stdin.",
    "Exit codes: 0 done, 1 failed, 2 wrong command line, 130 Ctrl-C, 143 SIGTERM.",
  ],
  options: [option.prompt, ...option.formatOptions, ...option.agentOptions, option.noTui],
  load: () => import("./default.ts"),
  commands: [
    {
      name: "chat",
      summary: "Chats line by line; /help lists what can be typed",
      options: option.agentOptions,
      load: () => import("./chat.ts"),
    },
    {
      name: "run",
      summary: "Asks one prompt and prints the answer",
      positionals: [
        {
          name: "PROMPT",
          summary: "What to ask; without it, or as -, it is read from stdin",
          required: false,
          rest: true,
        },
      ],
      options: [option.prompt, ...option.formatOptions, ...option.agentOptions],
      examples: [
        'super-pi run "explain package.json"',
        'super-pi -p "and the tests?" -c',
        'echo \'{"prompt": "hi"}\' | super-pi run --input-format stream-json',
      ],
      load: () => import("./run.ts"),
    },
    session,
    effects,
    questions,
    queue,
    tasks,
    {
      name: "undo",
      summary: "Takes back what the last run changed in the workspace, or what came since a checkpoint",
      positionals: [{ name: "ID", summary: "back to before this checkpoint (see --list)", required: false }],
      options: [option.list, option.force, option.conversation, option.json, option.cwd, option.db],
      examples: ["super-pi undo", "super-pi undo --list", "super-pi undo 3 --conversation 12"],
      load: () => import("./undo.ts"),
    },
    {
      name: "harnesses",
      summary: "Lists what a conversation can be: its plugins, tools and modes",
      options: [option.json],
      load: () => import("./harnesses.ts"),
    },
    {
      name: "why",
      summary: "Says which plugin decided what about a tool call",
      positionals: [{ name: "CALL", summary: "the call's id, or the number of its task", required: true }],
      options: [option.conversation, option.json, option.db],
      load: () => import("./why.ts"),
      examples: ["super-pi why 42", "super-pi why toolu_01 --conversation 7 --json"],
    },
    {
      name: "models",
      summary: "Lists what the configured providers serve",
      options: [option.json],
      load: () => import("./models.ts"),
    },
    {
      name: "rpc",
      summary: "Serves JSON-RPC 2.0, one object per line",
      details: ["", "Give one of --unix PATH, --stdio or a PORT (on 127.0.0.1)."],
      positionals: [{ name: "PORT", summary: "TCP port on 127.0.0.1; 0 takes a free one", required: false }],
      options: [option.unix, option.stdio, option.db, option.model, option.effort, option.mode, option.cwd],
      examples: ["super-pi rpc --unix /run/user/1000/super-pi.sock", "super-pi rpc 4001"],
      load: () => import("./rpc.ts"),
    },
    {
      name: "mcp",
      summary: "Serves the Model Context Protocol on stdin and stdout, for the program that starts it",
      options: [option.harness, option.mode, option.model, option.effort, option.cwd, option.db],
      examples: [
        "super-pi mcp",
        "super-pi mcp --harness super-pi-planner",
        "super-pi mcp add files npx -- -y @modelcontextprotocol/server-filesystem .",
        "super-pi mcp add docs https://mcp.example.com/mcp",
        "super-pi mcp list",
      ],
      load: () => import("./mcp-serve.ts"),
      commands: mcpClient,
    },
    {
      name: "acp",
      summary: "The agent of an editor that speaks the Agent Client Protocol, on stdin and stdout",
      options: [option.db, option.model, option.effort, option.mode, option.cwd],
      examples: ["super-pi acp", "super-pi acp --model anthropic/claude-sonnet-4-5"],
      load: () => import("./acp.ts"),
    },
    {
      name: "gateway",
      summary: "Serves the protocols that are spoken over HTTP",
      positionals: [{ name: "PORT", summary: "TCP port on 127.0.0.1; 0 takes a free one", required: true }],
      options: [option.host, option.verbose, option.db, option.model, option.effort, option.mode, option.cwd],
      examples: ["super-pi gateway 4000", "SUPER_PI_GATEWAY_TOKEN=… super-pi gateway 4000 --host 0.0.0.0"],
      load: () => import("./gateway.ts"),
    },
    {
      name: "node",
      summary: "Runs a node as a service: a member of the cluster that the environment names, with a gateway",
      details: ["", "Where it serves, its database and its cluster are in the environment; see docs/operations.md."],
      options: [
        option.port,
        option.host,
        option.verbose,
        option.db,
        option.model,
        option.effort,
        option.mode,
        option.cwd,
      ],
      examples: ["super-pi node", "SUPER_PI_GATEWAY=false super-pi node", "super-pi node --port 4001"],
      load: () => import("./node-service.ts"),
    },
    {
      name: "cluster",
      summary: "Shows the members of a cluster, their shards and conversations, and what waits",
      options: [option.url, option.json, option.db],
      examples: ["super-pi cluster", "super-pi cluster --url http://10.0.0.1:4000 --json"],
      load: () => import("./cluster.ts"),
    },
    {
      name: "migrate",
      summary: "Takes the schema of the database to the newest version, or to another one",
      options: [option.to, option.migrationStatus, option.force, option.json, option.db],
      examples: ["super-pi migrate", "super-pi migrate --status", "super-pi migrate --to 1 --force"],
      load: () => import("./migrate.ts"),
    },
    {
      name: "tree",
      summary: "Shows the live supervision tree of a running node",
      options: [option.watch, option.json, option.db],
      load: () => import("./tree.ts"),
    },
    {
      name: "trust",
      summary: "Shows the hooks that a project brings, and approves them as they are now",
      options: [option.cwd, option.revoke, option.json],
      examples: ["super-pi trust", "super-pi trust --revoke"],
      load: () => import("./trust.ts"),
    },
    {
      name: "doctor",
      summary: "Checks Node, the database, keys and disk, and says what to do",
      options: [option.json, option.db],
      load: () => import("./doctor.ts"),
    },
    {
      name: "demo",
      summary: "Kills a node in the middle of a tool call and shows that the turn still ends well",
      options: [],
      load: () => import("./demo.ts"),
    },
    {
      name: "start",
      summary: "What npm start opens: the chat where a model provider is configured, else the demonstration",
      hidden: true,
      options: [],
      load: () => import("./start.ts"),
    },
  ],
  examples: ["super-pi", 'super-pi run "what does this repository do?"', "super-pi -c", "super-pi doctor"],
}
