import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { type BeforeApplicationShutdown, type INestApplication, Injectable, type OnModuleDestroy } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { eventually } from '../../test/support/eventually.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { createLogging } from '../observability/logger.js'
import { Readiness } from '../observability/readiness.js'
import { RequestHooks } from '../observability/request-hooks.js'
import { GatewayHttpAdapter } from '../server/http-adapter.js'
import type { UpgradableServer } from '../server/upgrade.js'
import { drain, type ShutdownOptions } from './shutdown.js'

const LAST_WORK_MS = 50

/** Hears of the end, and ends when a test says so. */
@Injectable()
class SlowWork implements OnModuleDestroy, BeforeApplicationShutdown {
  isTold = false
  fails = false
  end: () => void = () => undefined
  private readonly ended = new Promise<void>((resolve) => {
    this.end = resolve
  })

  onModuleDestroy(): void {
    this.isTold = true
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.fails ? Promise.reject(new Error('no end in sight')) : this.ended
  }
}

let application: INestApplication
let work: SlowWork
let said: string[]
let exits: unknown[]

beforeEach(async () => {
  const module = await Test.createTestingModule({ providers: [Readiness, RequestHooks, SlowWork] }).compile()
  application = module.createNestApplication(new GatewayHttpAdapter(() => false), { logger: false })
  await application.listen(0, '127.0.0.1')
  work = application.get(SlowWork)
  said = []
  exits = []
  jest.spyOn(process, 'exit').mockImplementation((code) => {
    exits.push(code)
    return undefined as never
  })
})
afterEach(async () => {
  jest.restoreAllMocks()
  work.end()
  await application.close()
})

function drained(changes: Partial<ShutdownOptions> = {}): Promise<void> {
  const { logger } = createLogging('info', {
    write: (line) => said.push((JSON.parse(line) as { readonly msg: string }).msg),
  })
  return drain(application, 'SIGTERM', {
    timeouts: () => ({ drainDelayMs: 0, shutdownGraceMs: 0 }),
    logger,
    closeOthers: () => Promise.resolve(),
    lastWorkMs: LAST_WORK_MS,
    ...changes,
  })
}

/** A request that is never answered, once the server has it. */
async function openRequest(): Promise<{ readonly server: UpgradableServer; readonly client: Socket }> {
  const server = application.getHttpServer() as UpgradableServer
  const asked = once(server, 'request')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  client.write('GET / HTTP/1.1\r\nhost: gateway\r\n\r\n')
  await asked
  return { server, client }
}

describe('A process that is told to stop', () => {
  it('ends in time with code 0 although work in the background hangs, and says so', async () => {
    const startedAtMs = performance.now()
    await drained()
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(LAST_WORK_MS - 1)
    expect([work.isTold, exits]).toEqual([true, [0]])
    expect(said).toEqual(['draining', 'work in the background does not end: it is cut', 'stopped'])
  })

  it('ends as soon as the work has', async () => {
    const ended = drained({ lastWorkMs: 10_000 })
    await eventually(() => work.isTold)
    work.end()
    await ended
    expect([said, exits]).toEqual([['draining', 'stopped'], [0]])
  })

  it('says that the grace time is over, and cuts what runs, only where something still does', async () => {
    const told = jest.fn()
    application.get(Readiness).onGraceOver(told)
    work.end()
    const { client } = await openRequest()
    const closed = once(client, 'close')
    const startedAtMs = performance.now()
    await drained({ timeouts: () => ({ drainDelayMs: 0, shutdownGraceMs: 100 }) })
    await closed
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(99)
    expect([told.mock.calls.length, exits]).toEqual([1, [0]])
  })

  it('does not wait for the grace time where nothing runs', async () => {
    const told = jest.fn()
    application.get(Readiness).onGraceOver(told)
    work.end()
    await drained({ timeouts: () => ({ drainDelayMs: 0, shutdownGraceMs: 60_000 }) })
    expect([told.mock.calls.length, exits]).toEqual([0, [0]])
  })

  it('ends in time although a connection does not', async () => {
    work.end()
    const { client, server } = await openRequest()
    jest.spyOn(server, 'closeAllRequests').mockReturnValue(undefined)
    await drained()
    expect(exits).toEqual([0])
    expect(said).toEqual(['draining', 'work in the background does not end: it is cut', 'stopped'])
    client.destroy()
  })

  it('waits for what a caller has used who has left', async () => {
    const hooks = application.get(RequestHooks)
    const call = newCall()
    hooks.begun(call, {} as IncomingMessage)
    work.end()
    const ended = drained({ lastWorkMs: 10_000 })
    await once(application.getHttpServer() as UpgradableServer, 'close')
    await nextTurn()
    expect([work.isTold, exits]).toEqual([false, []])
    hooks.over(call, { status: 499, left: true, totalMs: 1, gatewayMs: 1 })
    await ended
    expect([work.isTold, exits]).toEqual([true, [0]])
  })

  it('ends although something fails at the end', async () => {
    work.fails = true
    await drained({ closeOthers: () => Promise.reject(new Error('the port is gone')) })
    expect(exits).toEqual([0])
    expect(said).toContain('the end of the work in the background failed')
    expect(said.at(-1)).toBe('stopped')
  })
})
