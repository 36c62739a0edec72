/**
 * What the official conformance suite expects of a server beside the protocol itself: its `test_*` tools and prompts and `test://` resources.
 * They are added to our own server, so that the suite runs against that; nothing of this is in the product.
 */
import {
  acceptedContent,
  createRequestStateCodec,
  inputRequired,
  type McpServer,
  ProtocolError,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { ServerExtension } from "../../../src/protocols/mcp/server/endpoint.ts"
import { anyArguments, textArguments } from "../../../src/protocols/mcp/server/schemas.ts"

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

const none = anyArguments({ type: "object", properties: {} })
const said = (text: string) => ({ content: [{ type: "text" as const, text }] })
const user = (text: string) => ({ role: "user" as const, content: { type: "text" as const, text } })
const soon = () => new Promise((resolve) => setTimeout(resolve, 20))

const texts = (...names: ReadonlyArray<string>) => ({
  type: "object" as const,
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" as const }])),
  required: [...names],
})

const codec = createRequestStateCodec<{ readonly round: number }>({ key: "k".repeat(32) })

const ask = (message: string, ...names: ReadonlyArray<string>) =>
  inputRequired.elicit({ message, requestedSchema: texts(...names) })
const sample = (text: string, maxTokens: number) => inputRequired.createMessage({ messages: [user(text)], maxTokens })

const given = (context: ServerContext, key: string) => context.mcpReq.inputResponses?.[key]

/** The accepted answer to a question, or null. */
const accepted = (context: ServerContext, key: string, field: string): string | null => {
  const content = acceptedContent<Record<string, unknown>>(context.mcpReq.inputResponses, key)
  const value = content?.[field]
  return typeof value === "string" || typeof value === "boolean" ? String(value) : null
}

const contents = (server: McpServer) => {
  const image = { type: "image" as const, data: png, mimeType: "image/png" }
  const tool = (name: string, content: Array<unknown>) =>
    server.registerTool(name, { description: "A fixture", inputSchema: none }, () => ({ content: content as never })) // content of the suite's own making
  tool("test_simple_text", [{ type: "text", text: "This is a simple text response for testing." }])
  tool("test_image_content", [image])
  tool("test_audio_content", [{ type: "audio", data: wav, mimeType: "audio/wav" }])
  const embedded = {
    uri: "test://embedded-resource",
    mimeType: "text/plain",
    text: "This is an embedded resource content.",
  }
  tool("test_embedded_resource", [{ type: "resource", resource: embedded }])
  const mixed = {
    uri: "test://mixed-content-resource",
    mimeType: "application/json",
    text: '{"test":"data","value":123}',
  }
  tool("test_multiple_content_types", [
    { type: "text", text: "Multiple content types test:" },
    image,
    { type: "resource", resource: mixed },
  ])
  server.registerTool("test_error_handling", { description: "A fixture", inputSchema: none }, () => {
    throw new Error("This tool intentionally returns an error for testing")
  })
  server.registerTool(
    "json_schema_2020_12_tool",
    {
      description: "Tool with JSON Schema 2020-12 features",
      inputSchema: anyArguments({
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        $defs: {
          address: {
            $anchor: "addressDef",
            type: "object",
            properties: { street: { type: "string" }, city: { type: "string" } },
          },
        },
        properties: {
          name: { type: "string" },
          address: { $ref: "#/$defs/address" },
          contactMethod: { type: "string", enum: ["phone", "email"] },
          phone: { type: "string" },
          email: { type: "string" },
        },
        allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
        if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
        // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
        then: { required: ["phone"] },
        else: { required: ["email"] },
        additionalProperties: false,
      }),
    },
    () => said("ok"),
  )
}

const working = (server: McpServer) => {
  server.registerTool(
    "test_tool_with_logging",
    { description: "A fixture", inputSchema: none },
    async (_, { mcpReq }) => {
      for (const message of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await mcpReq.log("info", message)
        await soon()
      }
      return said("logged")
    },
  )
  server.registerTool("test_logging_tool", { description: "A fixture", inputSchema: none }, async (_, { mcpReq }) => {
    await mcpReq.log("info", "from the tool")
    return said("logged")
  })
  server.registerTool(
    "test_tool_with_progress",
    { description: "A fixture", inputSchema: none },
    async (_, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      for (const progress of [0, 50, 100]) {
        const params = { progressToken: progressToken ?? 0, progress, total: 100 }
        if (progressToken !== undefined) await mcpReq.notify({ method: "notifications/progress", params })
        await soon()
      }
      return said("done")
    },
  )
  server.registerTool(
    "test_sampling",
    {
      description: "A fixture",
      inputSchema: textArguments({ prompt: { description: "What to ask", required: true } }),
    },
    async ({ prompt = "" }, { mcpReq }) => {
      const { content } = await mcpReq.send({
        method: "sampling/createMessage",
        params: { messages: [user(prompt)], maxTokens: 100 },
      })
      const [first] = Array.isArray(content) ? content : [content]
      return said(`LLM response: ${first?.type === "text" ? first.text : ""}`)
    },
  )
  server.registerTool(
    "test_elicitation",
    {
      description: "A fixture",
      inputSchema: textArguments({ message: { description: "What to show", required: true } }),
    },
    async ({ message = "" }, { mcpReq }) => {
      const { action, content } = await mcpReq.send({
        method: "elicitation/create",
        params: { message, requestedSchema: texts("username", "email") },
      })
      return said(`User response: action=${action}, content=${JSON.stringify(content)}`)
    },
  )
  const elicits = (name: string, properties: Record<string, unknown>) =>
    server.registerTool(name, { description: "A fixture", inputSchema: none }, async (_, { mcpReq }) => {
      const { action, content } = await mcpReq.send({
        method: "elicitation/create",
        params: { message: "Please fill in", requestedSchema: { type: "object", properties } },
      })
      return said(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)
    })
  elicits("test_elicitation_sep1034_defaults", {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  })
  const plain = ["option1", "option2", "option3"]
  const titled = (word: string) =>
    ["First", "Second", "Third"].map((n, at) => ({ const: `value${at + 1}`, title: `${n} ${word}` }))
  elicits("test_elicitation_sep1330_enums", {
    untitledSingle: { type: "string", enum: plain },
    titledSingle: { type: "string", oneOf: titled("Option") },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: plain } },
    titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
  })
}

const rounds = (server: McpServer) => {
  const tool = (
    name: string,
    run: (context: ServerContext) => Promise<ReturnType<typeof said> | ReturnType<typeof inputRequired>>,
  ) => server.registerTool(name, { description: "A fixture", inputSchema: none }, (_, context) => run(context))

  tool("test_input_required_result_elicitation", async (context) => {
    const name = accepted(context, "user_name", "name")
    return name === null
      ? inputRequired({ inputRequests: { user_name: ask("What is your name?", "name") } })
      : said(`Hello, ${name}!`)
  })
  tool("test_input_required_result_sampling", async (context) => {
    const answer = given(context, "capital_question")
    if (answer === undefined) {
      return inputRequired({ inputRequests: { capital_question: sample("What is the capital of France?", 100) } })
    }
    return said(JSON.stringify(answer))
  })
  tool("test_input_required_result_list_roots", async (context) => {
    const roots = given(context, "client_roots")
    return roots === undefined
      ? inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
      : said(JSON.stringify(roots))
  })
  const confirm = async () =>
    inputRequired({
      inputRequests: {
        confirm: inputRequired.elicit({
          message: "Please confirm",
          requestedSchema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
        }),
      },
      requestState: await codec.mint({ round: 1 }),
    })
  for (const name of ["test_input_required_result_request_state", "test_input_required_result_tampered_state"]) {
    tool(name, async (context) =>
      context.mcpReq.requestState() === undefined || given(context, "confirm") === undefined
        ? confirm()
        : said("state-ok"),
    )
  }
  tool("test_input_required_result_multiple_inputs", async (context) => {
    const keys = ["user_name", "greeting", "client_roots"]
    if (keys.every((key) => given(context, key) !== undefined)) return said("all three are there")
    return inputRequired({
      inputRequests: {
        user_name: ask("What is your name?", "name"),
        greeting: sample("Generate a greeting", 50),
        client_roots: inputRequired.listRoots(),
      },
      requestState: await codec.mint({ round: 1 }),
    })
  })
  tool("test_input_required_result_multi_round", async (context) => {
    const round = context.mcpReq.requestState<{ readonly round: number }>()?.round ?? 0
    if (round === 2 && given(context, "step2") !== undefined) return said("both steps are done")
    const requestState = await codec.mint({ round: round === 1 && given(context, "step1") !== undefined ? 2 : 1 })
    return round === 1 && given(context, "step1") !== undefined
      ? inputRequired({ inputRequests: { step2: ask("Step 2: What is your favorite color?", "color") }, requestState })
      : inputRequired({ inputRequests: { step1: ask("Step 1: What is your name?", "name") }, requestState })
  })
  tool("test_input_required_result_capabilities", async (context) => {
    const envelope = context.mcpReq.envelope as Record<string, unknown> | undefined // keys are the protocol's
    const declared = envelope?.["io.modelcontextprotocol/clientCapabilities"] as Record<string, unknown> | undefined
    if (given(context, "user_name") !== undefined || given(context, "greeting") !== undefined) return said("done")
    return inputRequired({
      inputRequests:
        declared?.elicitation === undefined
          ? { greeting: sample("Generate a greeting", 50) }
          : { user_name: ask("What is your name?", "name") },
    })
  })
  tool("test_missing_capability", async () =>
    inputRequired({ inputRequests: { greeting: sample("Generate a greeting", 50) } }),
  )
  tool("test_streaming_elicitation", async (context) => {
    const progressToken = context.mcpReq._meta?.progressToken
    if (progressToken !== undefined) {
      await context.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1 } })
    }
    return given(context, "user_name") === undefined
      ? inputRequired({ inputRequests: { user_name: ask("What is your name?", "name") } })
      : said("done")
  })
}

const prompts = (server: McpServer) => {
  server.registerPrompt("test_simple_prompt", { description: "A fixture" }, () => ({
    messages: [user("This is a simple prompt for testing.")],
  }))
  const field = (description: string) => ({ description, required: true })
  server.registerPrompt(
    "test_prompt_with_arguments",
    {
      description: "A fixture",
      argsSchema: textArguments({ arg1: field("First test argument"), arg2: field("Second test argument") }),
    },
    ({ arg1 = "", arg2 = "" }) => ({ messages: [user(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
  )
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "A fixture", argsSchema: textArguments({ resourceUri: field("URI of the resource to embed") }) },
    ({ resourceUri = "" }) => {
      const resource = { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." }
      const content = { type: "resource" as const, resource }
      return { messages: [{ role: "user" as const, content }, user("Please process the embedded resource above.")] }
    },
  )
  server.registerPrompt("test_prompt_with_image", { description: "A fixture" }, () => {
    const content = { type: "image" as const, data: png, mimeType: "image/png" }
    return { messages: [{ role: "user" as const, content }, user("Please analyze the image above.")] }
  })
  server.registerPrompt("test_input_required_result_prompt", { description: "A fixture" }, (context) => {
    const word = accepted(context, "user_context", "context")
    return word === null
      ? inputRequired({ inputRequests: { user_context: ask("What context should the prompt use?", "context") } })
      : { messages: [user(`Context: ${word}`)] }
  })
}

const resources = (server: McpServer) => {
  const text = (uri: string, body: string, mimeType = "text/plain") => ({ contents: [{ uri, mimeType, text: body }] })
  server.registerResource("static-text", "test://static-text", { mimeType: "text/plain" }, () =>
    text("test://static-text", "This is the content of the static text resource."),
  )
  server.registerResource("static-binary", "test://static-binary", { mimeType: "image/png" }, () => ({
    contents: [{ uri: "test://static-binary", mimeType: "image/png", blob: png }],
  }))
  server.registerResource("watched", "test://watched-resource", {}, () => text("test://watched-resource", "watched"))
  server.registerResource(
    "template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { mimeType: "application/json" },
    ({ href }, { id }) =>
      text(href, JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }), "application/json"),
  )
}

export const fixtures: ServerExtension = {
  options: {
    capabilities: { resources: { subscribe: true } },
    requestState: { verify: codec.verify },
  },
  register: (server, { stateless }) => {
    contents(server)
    working(server)
    rounds(server)
    prompts(server)
    resources(server)
    if (stateless) return
    for (const method of ["resources/subscribe", "resources/unsubscribe"] as const) {
      server.server.setRequestHandler(method, ({ params }) => {
        if (params.uri === "") throw new ProtocolError(-32602, "uri: expected a text that is not empty")
        return {}
      })
    }
  },
}
