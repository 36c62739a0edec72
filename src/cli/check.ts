/**
 * One check of `super-pi doctor`.
 */

export interface Check {
  readonly name: string
  /** `warn`: works, but not as well as it could. `fail`: something will not work. */
  readonly status: "ok" | "warn" | "fail"
  readonly detail: string
  /** What to do; only where something is wrong. */
  readonly advice?: string
}

export const ok = (name: string, detail: string): Check => ({ name, status: "ok", detail })
export const warn = (name: string, detail: string, advice: string): Check => ({ name, status: "warn", detail, advice })
export const fail = (name: string, detail: string, advice: string): Check => ({ name, status: "fail", detail, advice })
