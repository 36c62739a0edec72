/**
 * A variable of the environment, or a setting in its place, that cannot be meant.
 */
import { Data } from "effect"

export class InvalidSetting extends Data.TaggedError("InvalidSetting")<{
  readonly variable: string
  readonly expected: string
  /** What came; never a secret. */
  readonly got: string
}> {
  override get message() {
    return `${this.variable}: expected ${this.expected}, got ${this.got}`
  }
}
