/**
 * Which variables of the environment hold secrets.
 */
import { describe, expect, it } from "vitest"
import { redactText, secretsOf } from "../../src/domain/redact.ts"

describe("the secrets of an environment", () => {
  it("are those of models, gateways and clusters, by the names of their variables", () => {
    const env = {
      ANTHROPIC_API_KEY: "a-long-model-key",
      SUPER_PI_GATEWAY_TOKEN: "a-long-gateway-token",
      SUPER_PI_CLUSTER_SECRET: "a-long-cluster-secret",
      RELEASE_COOKIE: "a-long-cookie-of-a-release",
      HOME: "/home/somebody",
    }
    expect([...secretsOf(env)].sort()).toEqual(
      ["a-long-cluster-secret", "a-long-cookie-of-a-release", "a-long-gateway-token", "a-long-model-key"].sort(),
    )
  })

  it("are taken out of texts, and so are passwords in URLs", () => {
    const text = "postgres://app:hunter22@db/x under a-long-cookie-of-a-release"
    const out = redactText(text, secretsOf({ RELEASE_COOKIE: "a-long-cookie-of-a-release" }))
    expect(out).toBe("postgres://app:[redacted]@db/x under [redacted]")
  })
})
