/**
 * The test suite: every `*.test.ts` under `test/`. Tests need no service, key or network, and run in separate processes where
 * they start servers or take locks.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/home.ts"],
    pool: "forks",
    poolOptions: { forks: { minForks: 1, maxForks: 2 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A hanging worker must not keep the command from ending.
    teardownTimeout: 10_000,
    unstubEnvs: true,
    env: { NO_COLOR: "1" },
  },
})
