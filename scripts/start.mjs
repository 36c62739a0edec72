/**
 * `npm start`: installs what is missing, builds when the sources changed, and runs the main job: with arguments, that command; without, the
 * chat when a model provider is configured, else the guided demonstration.
 */
import path from "node:path"
import { main, root, runChild } from "./install.mjs"
import { prepare } from "./prepare.mjs"

/** Variables of which any one configures a provider or names a model. */
const providerVariables = [
  "GEMINI_API_KEY",
  "ANTHROPIC_API_KEY",
  "OPENAI_API_KEY",
  "SUPER_PI_OPENAI_BASE_URL",
  "SUPER_PI_OPENAI_AUTH_COMMAND",
  "SUPER_PI_DEFAULT_MODEL",
]

await main("super-pi", async () => {
  await prepare()
  const given = process.argv.slice(2)
  const configured = providerVariables.some((name) => (process.env[name] ?? "") !== "")
  const args = given.length > 0 ? given : [configured ? "chat" : "demo"]
  return await runChild(process.execPath, [path.join(root, "bin", "super-pi"), ...args])
})
