/**
 * The peer: LangGraph JS with its SQLite checkpointer, the same turn (user input, tool call, tool result, answer) on an instant model. It
 * saves a checkpoint after every step, so each step is durable here as there.
 */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages"
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph"
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite"
import type { OpenEngine } from "./engine.ts"
import { answerText, promptText, toolArguments, toolOutput } from "./turn.ts"

/** Answers like the scripted model: a call after the user's message, text after the tool's result. */
const model = (messages: ReadonlyArray<BaseMessage>): AIMessage => {
  const last = messages.at(-1)
  if (last instanceof ToolMessage) return new AIMessage(answerText)
  const id = `call_${messages.length}`
  return new AIMessage({ content: "", tool_calls: [{ id, name: "noop", args: toolArguments }] })
}

export const openLangGraph: OpenEngine = async (path) => {
  const saver = SqliteSaver.fromConnString(path)
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("agent", (state) => ({ messages: [model(state.messages)] }))
    .addNode("tools", (state) => {
      const last = state.messages.at(-1)
      const calls = last instanceof AIMessage ? (last.tool_calls ?? []) : []
      return {
        messages: calls.map(({ id, name }) => new ToolMessage({ content: toolOutput, tool_call_id: id ?? "", name })),
      }
    })
    .addEdge(START, "agent")
    .addConditionalEdges("agent", ({ messages }) => {
      const last = messages.at(-1)
      return last instanceof AIMessage && (last.tool_calls?.length ?? 0) > 0 ? "tools" : END
    })
    .addEdge("tools", "agent")
    .compile({ checkpointer: saver })
  return {
    begin: async () => {},
    turn: async (thread, turn) => {
      const config = { configurable: { thread_id: String(thread) }, durability: "sync" as const }
      const { messages } = await graph.invoke({ messages: [new HumanMessage(promptText(turn))] }, config)
      const text = messages.at(-1)?.content
      if (text !== answerText) throw new Error(`LangGraph answered ${JSON.stringify(text)}`)
    },
    close: async () => {
      saver.db.close()
    },
  }
}
