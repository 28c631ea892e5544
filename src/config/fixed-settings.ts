import { isDeepStrictEqual } from 'node:util'
import { deepFreeze } from './deep-freeze.js'
import type { GatewayConfig } from './settings.js'

const FIXED_SECTIONS = ['database', 'redis', 'observability'] as const

/** A port is bound and a pool is open once per process: `current` says what runs, so these keep their running values. */
export function keepFixedSettings(loaded: GatewayConfig, running: GatewayConfig) {
  const needsRestart = [
    ...(['host', 'port', 'metricsPort', 'workers'] as const)
      .filter((setting) => loaded.server[setting] !== running.server[setting])
      .map((setting) => `server.${setting}`),
    ...FIXED_SECTIONS.filter((section) => !isDeepStrictEqual(loaded[section], running[section])),
  ]
  if (needsRestart.length === 0) return { next: loaded, needsRestart }
  const { host, port, metricsPort, workers } = running.server
  const server = { ...loaded.server, host, port, metricsPort, workers }
  const { database, redis, observability } = running
  return { next: deepFreeze({ ...loaded, server, database, redis, observability }), needsRestart }
}
