import { setTimeout as pause } from 'node:timers/promises'
import type { INestApplication } from '@nestjs/common'
import type { TimeoutsSection } from '../config/settings.js'
import { settledWithin } from '../core/time.js'
import type { Logger } from '../observability/logger.js'
import { Readiness } from '../observability/readiness.js'
import { RequestHooks } from '../observability/request-hooks.js'
import type { UpgradableServer } from '../server/upgrade.js'
import { READ_ON_MS } from '../upstream/sse-relay.js'

const IDLE_SWEEP_MS = 50

/**
 * Time for closing the last connections and all background work: a client that does not complete a close, or a store that
 * hangs, must not keep the process until it is killed. Unfinished work is recovered at the next start, as after a crash.
 */
export const LAST_WORK_MS = 10_000

export interface ShutdownOptions {
  readonly timeouts: () => Pick<TimeoutsSection, 'drainDelayMs' | 'shutdownGraceMs'>
  readonly logger: Logger
  /** Runs last, before the process exits. */
  readonly closeOthers: () => Promise<void>
  /** Given by tests only. */
  readonly lastWorkMs?: number
}

/**
 * Calls `drain` on the first SIGTERM or SIGINT. A second signal exits with 1: at once, or, if workers have to end first,
 * after `abandon`; further signals have no effect.
 */
export function drainOnSignal(drain: (signal: string) => Promise<void>, abandon?: () => Promise<void>): void {
  let signals = 0
  const exit = (): never => process.exit(1)
  const onSignal = (signal: NodeJS.Signals): void => {
    signals += 1
    if (signals === 1) void drain(signal)
    else if (abandon === undefined) exit()
    else if (signals === 2) void abandon().finally(exit)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

/**
 * Not ready; after the delay no new connections; running requests finish within the grace time; then the work in the
 * background ends, or ten seconds pass, and the process exits with 0.
 */
export async function drain(application: INestApplication, signal: string, options: ShutdownOptions): Promise<void> {
  const { logger, lastWorkMs = LAST_WORK_MS } = options
  const { drainDelayMs, shutdownGraceMs } = options.timeouts()
  logger.info({ signal }, 'draining')
  const readiness = application.get(Readiness)
  if (drainDelayMs > 0) {
    // A load balancer sends requests until its next probe; those to a closed port may be lost.
    readiness.markLeaving()
    await pause(drainDelayMs)
  }
  readiness.markDraining()
  const server = application.getHttpServer() as UpgradableServer
  const closed = closeServer(server)
  if (!(await settledWithin(closed, shutdownGraceMs))) {
    // Remaining requests are aborted, and their upstream requests with them; sockets get a close reason.
    server.closeAllRequests()
    readiness.markGraceOver()
  }
  // Upstreams may still be saying what callers have used who have left.
  const lastWork = closed
    .then(() => settledWithin(application.get(RequestHooks).whenIdle(), READ_ON_MS))
    .then(() => stopWork(application, options))
  const isOver = await settledWithin(lastWork, lastWorkMs)
  if (!isOver) logger.warn({ waitedMs: lastWorkMs }, 'work in the background does not end: it is cut')
  logger.info('stopped')
  process.exit(0)
}

/** Never rejects: a failure must not keep the process running. */
async function stopWork(application: INestApplication, { closeOthers, logger }: ShutdownOptions): Promise<void> {
  for (const stop of [() => application.close(), closeOthers]) {
    await stop().catch((error: unknown) => {
      logger.error({ err: error }, 'the end of the work in the background failed')
    })
  }
}

/** Accepts no new connections, and closes idle ones. Resolves when the last one is closed. */
async function closeServer(server: UpgradableServer): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve()
    })
  })
  // A response that began before the drain allows its client to keep the connection; it is closed once idle.
  const sweep = setInterval(() => {
    server.closeIdleConnections()
  }, IDLE_SWEEP_MS)
  server.closeIdleConnections()
  await closed
  clearInterval(sweep)
}
