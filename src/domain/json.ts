/**
 * JSON values, the only data that records, documents and messages hold.
 */
import { Schema } from "effect"

/** Any JSON value. */
export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

/** Schema of {@link Json}; numbers are finite, since JSON has no others. */
export const Json: Schema.Schema<Json> = Schema.suspend(() =>
  Schema.Union(
    Schema.Null,
    Schema.Boolean,
    Schema.JsonNumber,
    Schema.String,
    Schema.Array(Json),
    Schema.Record({ key: Schema.String, value: Json }),
  ),
).annotations({ identifier: "Json" })

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json }

/** Schema of {@link JsonObject}. */
export const JsonObject: Schema.Schema<JsonObject> = Schema.Record({ key: Schema.String, value: Json })

/** Whether a value has named fields: an object that is no array. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** {@link isRecord} for a value that came from JSON. */
export const isJsonObject = (value: unknown): value is JsonObject => isRecord(value)
