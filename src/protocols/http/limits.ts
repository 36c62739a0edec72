/**
 * The limits of a server with their defaults, in the units of the code: bytes and milliseconds.
 */
import type { GatewaySettings } from "../../domain/gateway-settings.ts"

export interface HttpLimits {
  readonly bodyBytes: number
  readonly headerBytes: number
  readonly headerMs: number
  readonly bodyMs: number
  readonly stalledMs: number
  readonly keepAliveMs: number
  readonly connections: number
  readonly connectionsPerAddress: number
  readonly streams: number
  readonly streamsPerPrincipal: number
  readonly requestsPerSecond: number
  readonly requestBurst: number
  readonly loginsPerMinute: number
  readonly heartbeatMs: number
  readonly drainMs: number
}

export const limitsOf = (
  settings: Pick<GatewaySettings, "limits" | "heartbeatSeconds" | "drainSeconds">,
): HttpLimits => {
  const { limits = {} } = settings
  const ms = (seconds: number | undefined, otherwise: number) => Math.ceil((seconds ?? otherwise) * 1000)
  return {
    bodyBytes: limits.bodyBytes ?? 32 * 1024 * 1024,
    headerBytes: limits.headerBytes ?? 16 * 1024,
    headerMs: ms(limits.headerSeconds, 10),
    bodyMs: ms(limits.bodySeconds, 60),
    stalledMs: ms(limits.stalledSeconds, 60),
    keepAliveMs: ms(limits.keepAliveSeconds, 65),
    connections: limits.connections ?? 2048,
    connectionsPerAddress: limits.connectionsPerAddress ?? 1024,
    streams: limits.streams ?? 1024,
    streamsPerPrincipal: limits.streamsPerPrincipal ?? 512,
    requestsPerSecond: limits.requestsPerSecond ?? 100,
    requestBurst: limits.requestBurst ?? 400,
    loginsPerMinute: limits.loginsPerMinute ?? 30,
    heartbeatMs: ms(settings.heartbeatSeconds, 15),
    drainMs: ms(settings.drainSeconds, 10),
  }
}
