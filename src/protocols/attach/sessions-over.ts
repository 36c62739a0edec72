/**
 * The session contract as a service over a connection's client.
 */
import type { RpcClient } from "@effect/rpc/RpcClient"
import type { RpcClientError } from "@effect/rpc/RpcClientError"
import type * as RpcGroup from "@effect/rpc/RpcGroup"
import { Effect, Stream } from "effect"
import type { SessionRpcs } from "../../actors/contract.ts"
import type { OwnerGone, SessionsOver } from "./attachment.ts"
import type { Connection } from "./connection.ts"

/** The sessions behind `client`, which speaks over `connection`; any number of calls and streams at once. */
export const sessionsOver = (
  client: RpcClient<RpcGroup.Rpcs<typeof SessionRpcs>, RpcClientError>,
  { call, translate }: Pick<Connection, "call" | "translate">,
): SessionsOver<OwnerGone> => ({
  open: (payload) => call(client.Open(payload)),
  openNamed: (payload) => call(client.OpenNamed(payload)),
  setName: (payload) => call(client.SetName(payload)),
  findNamed: (payload) => call(client.FindNamed(payload)),
  listNamed: (payload) => call(client.ListNamed(payload)),
  submit: (payload) => call(client.Submit(payload)),
  write: (payload) => call(client.Write(payload)),
  reset: (payload) => call(client.Reset(payload)),
  withdraw: (payload) => call(client.Withdraw(payload)),
  fork: (payload) => call(client.Fork(payload)),
  submission: (payload) => call(client.ReadSubmission(payload)),
  submissions: (payload) => call(client.ListSubmissions(payload)),
  awaitSubmission: (payload) => call(client.AwaitSubmission(payload)),
  watch: (payload) =>
    client
      .Watch(payload, { streamBufferSize: 256 })
      .pipe(Stream.catchAllCause((cause) => Stream.fromEffect(translate(cause)))),
  cancel: (payload) => call(client.Cancel(payload)),
  state: (payload) => call(client.State(payload)),
  configure: (payload) => call(client.Configure(payload)),
  list: (payload) => call(client.List(payload)),
  transcript: (payload) => call(client.Transcript(payload)),
  remove: (payload) => call(client.Remove(payload)),
  compact: (payload) => call(client.Compact(payload)),
  retry: (payload) => call(client.Retry(payload)),
  effects: (payload) => call(client.Effects(payload)),
  settleEffect: (payload) => call(client.SettleEffect(payload)),
  checkpoints: (payload) => call(client.Checkpoints(payload)),
  undo: (payload) => call(client.Undo(payload)),
  harnesses: call(Effect.suspend(() => client.ListHarnesses())),
  why: (payload) => call(client.Why(payload)),
  questions: (payload) => call(client.Questions(payload)),
  answer: (payload) => call(client.Answer(payload)),
  queues: call(Effect.suspend(() => client.ListQueues())),
  changeQueue: (payload) => call(client.ChangeQueue(payload)),
  tasks: (payload) => call(client.ListTasks(payload)),
  task: (payload) => call(client.ReadTask(payload)),
  changeTask: (payload) => call(client.ChangeTask(payload)),
  addMcpServers: (payload) => call(client.AddMcpServers(payload)),
  mcpServers: (payload) => call(client.ListMcpServers(payload)),
  restartMcpServer: (payload) => call(client.RestartMcpServer(payload)),
  tree: call(Effect.suspend(() => client.Tree())),
})
