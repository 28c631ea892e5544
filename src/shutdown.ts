import type { Server } from 'node:http'
import type { INestApplication } from '@nestjs/common'
import type { Logger } from './common/observability/logger.js'
import { Readiness } from './common/observability/readiness.js'

const IDLE_SWEEP_MS = 50

export interface ShutdownOptions {
  readonly graceMs: () => number
  readonly logger: Logger
  /** Runs last, before the process exits. */
  readonly closeOthers: () => Promise<void>
}

/**
 * Drains on the first SIGTERM or SIGINT: not ready, no new connections, running requests finish within the grace time,
 * then exit 0. A second signal exits at once.
 */
export function drainOnSignal(application: INestApplication, options: ShutdownOptions): void {
  let draining = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (draining) process.exit(1)
    draining = true
    void drain(application, signal, options)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

async function drain(application: INestApplication, signal: string, options: ShutdownOptions): Promise<void> {
  const { logger } = options
  logger.info({ signal }, 'draining')
  application.get(Readiness).announceDraining()
  const server = application.getHttpServer() as Server
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve()
    })
  })
  // A connection whose answer began before the drain is kept alive by its client; it is closed once it falls idle.
  const sweep = setInterval(() => {
    server.closeIdleConnections()
  }, IDLE_SWEEP_MS)
  server.closeIdleConnections()
  // What is still running after the grace time is cut: visibly, and the upstreams with it.
  const grace = setTimeout(() => {
    server.closeAllConnections()
  }, options.graceMs())
  await closed
  clearTimeout(grace)
  clearInterval(sweep)
  await application.close()
  await options.closeOthers()
  logger.info('stopped')
  process.exit(0)
}
