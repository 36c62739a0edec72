/**
 * Ports of loopback that nobody listens on at the moment.
 */
import { createServer, type Server } from "node:net"

const listen = (): Promise<Server> =>
  new Promise((done, fail) => {
    const server = createServer()
    server.once("error", fail)
    server.listen(0, "127.0.0.1", () => done(server))
  })

/** `count` different ones: all are held until the last is found. */
export const freePorts = async (count: number): Promise<ReadonlyArray<number>> => {
  const servers = await Promise.all(Array.from({ length: count }, listen))
  const ports = servers.map((server) => {
    const address = server.address()
    return typeof address === "object" && address !== null ? address.port : 0
  })
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))))
  return ports
}
