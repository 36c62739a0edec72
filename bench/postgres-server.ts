/**
 * The PostgreSQL server that benches share with their peers: one that waits for its disk.
 */
import { spawn } from "node:child_process"
import path from "node:path"
import { createInterface } from "node:readline"
import { Client } from "pg"

export interface Server {
  readonly url: string
  readonly close: () => Promise<void>
}

/** The server of `DATABASE_URL`, or one of its own. */
export const openServer = async (): Promise<Server> => {
  const given = process.env.DATABASE_URL
  if (given !== undefined) return { url: given, close: async () => undefined }
  const keeper = path.resolve("test/support/postgres-server.mjs")
  const config = ["listen_addresses=127.0.0.1", "shared_buffers=128MB", "max_connections=200"]
  const options = JSON.stringify({ auth: "password", files: {}, hba: [], config })
  const child = spawn(process.execPath, [keeper, options], { stdio: ["pipe", "pipe", "inherit"] })
  const { value = "" } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()
  const { port }: { port: number } = JSON.parse(value)
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  return {
    url: `postgresql://postgres:postgres@127.0.0.1:${port}/postgres`,
    close: () => {
      child.stdin.end()
      return ended
    },
  }
}

/** A fresh empty database there. */
export const createDatabase = async ({ url }: Server, name: string): Promise<string> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  const made = new URL(url)
  made.pathname = `/${name}`
  return made.href
}
