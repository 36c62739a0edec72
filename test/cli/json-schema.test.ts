/**
 * `super-pi run --json-schema`: real processes of the built program, with a scripted model.
 */
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "./program.ts"

let bench: Bench

const person = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
}

const gives = (...values: ReadonlyArray<unknown>) => [
  ...values.map((args) => ({ tools: [{ name: "structured_output", args }] })),
  { text: "It goes on, although it should not." },
]

const script = {
  rules: [
    { match: "^good", steps: gives({ name: "Ada", age: 36 }) },
    { match: "^repaired", steps: gives({ name: "Ada" }, { name: "Ada", age: 36 }) },
    { match: "^hopeless", steps: gives({ name: "Ada" }, { name: 4, age: 36 }) },
    { match: "^list", steps: gives({ value: [1, 2] }) },
    { match: "^in words", steps: [{ text: "Ada, 36." }] },
    { match: "^as text", steps: [{ text: '```json\n{"name": "Ada", "age": 36}\n```' }] },
    { match: "^stubborn", steps: [{ text: "No, in words." }] },
    { match: "wanted as a value", steps: gives({ name: "Ada", age: 36 }) },
    { match: "^fail$", steps: [{ status: 400, message: "the request is refused" }] },
    { match: ".*", steps: [{ text: "Plain." }] },
  ],
}

const inline = JSON.stringify(person)

const run = (prompt: string, ...more: ReadonlyArray<string>) =>
  bench.run(["run", prompt, "--json-schema", inline, ...more], {
    env: { SUPER_PI_SCRIPT: join(bench.directory, "script.json"), SUPER_PI_DEFAULT_MODEL: "script/test" },
  })

beforeAll(async () => {
  bench = makeBench()
  await buildProgram()
  bench.write("script.json", JSON.stringify(script))
  bench.write("person.json", JSON.stringify(person, null, 2))
}, 300_000)

afterAll(() => bench.remove())

const ada = { code: 0, stdout: '{"name":"Ada","age":36}\n', stderr: "" }

describe("super-pi run --json-schema", () => {
  it("prints the value and nothing else, by a schema on the line or in a file", async () => {
    expect(await run("good")).toEqual(ada)
    expect(await run("good", "--json-schema", "person.json")).toEqual(ada)
    expect(await run("list", "--json-schema", '{"type":"array","items":{"type":"integer"}}')).toEqual({
      code: 0,
      stdout: "[1,2]\n",
      stderr: "",
    })
  })

  it("takes a value that was wrong and then repaired, one that came in words first, and one that is the answer itself", async () => {
    expect(await run("repaired")).toEqual(ada)
    expect(await run("in words")).toEqual(ada)
    expect(await run("as text")).toEqual(ada)
  })

  it("fails with what is wrong when the repair is no better", async () => {
    const failed = await run("hopeless")
    expect([failed.code, failed.stdout]).toEqual([1, ""])
    expect(failed.stderr).toBe("super-pi: the model gave no value that fits the schema: name: expected string, got 4\n")
  })

  it("carries the value in the result object, and null where there is none", async () => {
    const result = async (prompt: string) => {
      const { code, stdout } = await run(prompt, "--output-format", "json")
      return { code, result: JSON.parse(stdout) }
    }
    expect(await result("good")).toMatchObject({
      code: 0,
      result: { structured_output: { name: "Ada", age: 36 }, is_error: false, turns: 1 },
    })
    expect(await result("hopeless")).toMatchObject({
      code: 1,
      result: { structured_output: null, is_error: true, error: expect.stringContaining("name: expected string") },
    })
    expect(await result("fail")).toMatchObject({
      code: 1,
      result: { structured_output: null, error: expect.stringContaining("the request is refused") },
    })
  })

  it("asks by the schema for this prompt only", async () => {
    const first = await run("good", "--output-format", "json")
    const id = String(JSON.parse(first.stdout).conversation_id)
    const env = { SUPER_PI_SCRIPT: join(bench.directory, "script.json"), SUPER_PI_DEFAULT_MODEL: "script/test" }
    const next = await bench.run(["run", "plain", "--conversation", id], { env })
    expect(next).toEqual({ code: 0, stdout: "Plain.\n", stderr: "" })
    expect((await run("repaired", "--conversation", id)).stdout).toBe(ada.stdout)
  })

  it("refuses a schema that is none, with the place of the fault", async () => {
    bench.write("broken.json", '{\n  "type": "object",\n}')
    bench.write("list.json", "[1]")
    bench.write("wrong.json", '{"properties": {"age": {"type": "number", "minimum": "0"}}}')
    const fault = async (given: string) => {
      const { code, stderr, stdout } = await run("good", "--json-schema", given)
      expect([code, stdout]).toEqual([2, ""])
      return stderr
    }
    expect(await fault("broken.json")).toContain("broken.json:3:1: expected JSON")
    expect(await fault("list.json")).toContain("list.json: expected a JSON Schema object, got [1]")
    expect(await fault("wrong.json")).toContain("properties.age.minimum: expected number")
    expect(await fault("missing.json")).toContain("missing.json: there is none")
    expect(await fault('{"type": "strnig"}')).toContain("type: expected one of")
  })
})
