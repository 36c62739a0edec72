/**
 * Deltas of documents: RFC 6902 operations from one JSON value to another, and their application. Pure. Rules:
 * 1. Applying `diff(a, b)` to `a` gives `b`; object keys have no order.
 * 2. `diff` takes time linear in the values, and skips what they share by identity, as a draft and its base do.
 * 3. What operations cannot say safely (another root, a name that libraries guard) or shortly is `null`: the whole value is stored.
 */
import { Either, Schema } from "effect"
import { applyPatch } from "rfc6902"
import { isRecord, type Json } from "./json.ts"

const Pointer = Schema.String.pipe(Schema.pattern(/^(\/.*)?$/s))

/** One RFC 6902 operation; paths are RFC 6901 pointers. Values are any JSON. */
export const PatchOperation = Schema.Union(
  Schema.Struct({ op: Schema.Literal("add", "replace", "test"), path: Pointer, value: Schema.Unknown }),
  Schema.Struct({ op: Schema.Literal("remove"), path: Pointer }),
  Schema.Struct({ op: Schema.Literal("move", "copy"), from: Pointer, path: Pointer }),
)
export type PatchOperation = typeof PatchOperation.Type

/** Names that a library refuses or follows to a prototype; a delta never walks through one. */
const guarded: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"])

/** How far ahead an array's diff looks for the place where both sides agree again. */
const lookahead = 64

/** Items of one array for which that search may find nothing; then its diff goes on item by item. */
const patience = 64

/** Operations of one delta at most: of more, the whole value is the better record. */
const mostOperations = 1_000

class Inexpressible extends Error {}

const pointer = (path: string, key: string): string => {
  if (guarded.has(key)) throw new Inexpressible()
  return `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`
}

/** Equality of JSON values; a key without a value is no key, and keys have no order. */
export const sameJson = (a: unknown, b: unknown): boolean => {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => sameJson(item, b[at]))
  }
  if (!isRecord(a) || !isRecord(b)) return false
  let ahead = 0
  for (const key of Object.keys(a)) {
    if (a[key] === undefined) continue
    if (!Object.hasOwn(b, key) || !sameJson(a[key], b[key])) return false
    ahead++
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) ahead--
  return ahead === 0
}

/** The operations that turn `before` into `after`; null where only the whole value will do. */
export const diff = (before: Json, after: Json): ReadonlyArray<PatchOperation> | null => {
  if (!sameShape(before, after)) return sameJson(before, after) ? [] : null
  const operations: Array<PatchOperation> = []
  try {
    diffInto(operations, "", before, after)
    return operations.length > mostOperations ? null : operations
  } catch (cause) {
    if (cause instanceof Inexpressible) return null
    throw cause
  }
}

const sameShape = (a: unknown, b: unknown): boolean =>
  Array.isArray(a) ? Array.isArray(b) : isRecord(a) && isRecord(b)

const diffInto = (into: Array<PatchOperation>, path: string, before: unknown, after: unknown): void => {
  if (before === after) return
  if (into.length > mostOperations) throw new Inexpressible()
  if (Array.isArray(before) && Array.isArray(after)) diffArray(into, path, before, after)
  else if (isRecord(before) && isRecord(after)) diffObject(into, path, before, after)
  else into.push({ op: "replace", path, value: carried(after) })
}

/** A value as an operation carries it: a hole of an array is null; a key `__proto__` would be lost when the library copies the value. */
const carried = (value: unknown): unknown => {
  if (value === undefined) return null
  if (typeof value === "object" && value !== null && holdsProto(value)) throw new Inexpressible()
  return value
}

const holdsProto = (value: object): boolean =>
  Object.hasOwn(value, "__proto__") ||
  Object.values(value).some((inner) => typeof inner === "object" && inner !== null && holdsProto(inner))

const diffObject = (
  into: Array<PatchOperation>,
  path: string,
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): void => {
  for (const key of Object.keys(before)) {
    if (before[key] === undefined) continue
    if (!has(after, key)) into.push({ op: "remove", path: pointer(path, key) })
    else if (before[key] !== after[key] && !(guarded.has(key) && sameJson(before[key], after[key]))) {
      diffInto(into, pointer(path, key), before[key], after[key])
    }
  }
  for (const key of Object.keys(after)) {
    if (after[key] === undefined || has(before, key)) continue
    into.push({ op: "add", path: pointer(path, key), value: carried(after[key]) })
  }
}

const has = (value: Readonly<Record<string, unknown>>, key: string): boolean =>
  Object.hasOwn(value, key) && value[key] !== undefined

/** Walks both sides; `at` is the place in the array as it is after the operations so far. */
const diffArray = (
  into: Array<PatchOperation>,
  path: string,
  before: ReadonlyArray<unknown>,
  after: ReadonlyArray<unknown>,
): void => {
  let from = 0
  let at = 0
  let fruitless = 0
  const agreesAfter = (side: ReadonlyArray<unknown>, start: number, wanted: unknown): number => {
    const end = Math.min(side.length, start + lookahead)
    for (let index = start + 1; index < end; index++) if (sameJson(side[index], wanted)) return index - start
    return 0
  }
  while (from < before.length && at < after.length) {
    if (sameJson(before[from], after[at])) {
      from++
      at++
      continue
    }
    const patient = fruitless < patience
    const removed = patient ? agreesAfter(before, from, after[at]) : 0
    const added = patient && removed !== 1 ? agreesAfter(after, at, before[from]) : 0
    if (removed + added === 0) fruitless++
    if (removed > 0 && (added === 0 || removed <= added)) {
      for (let count = 0; count < removed; count++) into.push({ op: "remove", path: `${path}/${at}` })
      from += removed
    } else if (added > 0) {
      for (let count = 0; count < added; count++, at++)
        into.push({ op: "add", path: `${path}/${at}`, value: carried(after[at]) })
    } else {
      diffInto(into, `${path}/${at}`, before[from++], after[at])
      at++
    }
  }
  for (let left = before.length - from; left > 0; left--) into.push({ op: "remove", path: `${path}/${at + left - 1}` })
  for (; at < after.length; at++) into.push({ op: "add", path: `${path}/${at}`, value: carried(after[at]) })
}

const through = (path: string): string | undefined => path.split("/").find((token) => guarded.has(token))

/** `value` after the operations, or which of them does not fit and why. `value` itself may be changed: hand over one of your own. */
export const applyOperations = (
  value: Json,
  operations: ReadonlyArray<PatchOperation>,
): Either.Either<Json, string> => {
  let root: Json = value
  for (const [index, operation] of operations.entries()) {
    const where = `operation ${index} (${operation.op} ${operation.path})`
    const name = through(operation.path) ?? ("from" in operation ? through(operation.from) : undefined)
    if (name !== undefined) return Either.left(`${where}: expected a path without ${name}`)
    if (operation.path === "" && (operation.op === "add" || operation.op === "replace")) {
      root = operation.value as Json
      continue
    }
    const [fault] = applyPatch(root, [operation])
    if (fault != null) return Either.left(`${where}: ${fault.message}`)
  }
  return Either.right(root)
}
