import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { startGateway, TEST_KEY } from '../support/gateway.js'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { valueOf } from '../support/prometheus-text.js'
import { type HoldingProxy, startHoldingProxy } from '../support/proxies.js'
import { realtimeChannel, startRealtimeUpstream } from '../support/realtime-upstream.js'
import { scrapable, type Scraper, startScraper } from '../support/scrapes.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

const closers: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe('A scrape during a realtime session', () => {
  it('shows the session and what has passed through it so far', async () => {
    const upstream = await startRealtimeUpstream()
    closers.push(() => upstream.close())
    const gateway = await startGateway({ channels: [realtimeChannel(upstream)], sections: await scrapable() })
    closers.push(() => gateway.close())
    const scraper = await startScraper(gateway.application)
    closers.push(() => scraper.close())
    const client = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=gpt-realtime`, {
      headers: { authorization: `Bearer ${TEST_KEY}` },
    })
    await once(client, 'open')
    const open = await scraper.untilValue('gateway_realtime_sessions', {}, 1)
    expect(valueOf(open, 'gateway_requests_in_flight', { family: 'realtime' })).toBe(1)

    const event = JSON.stringify({ type: 'input_audio_buffer.commit' })
    const received = once(client, 'message')
    client.send(event)
    upstream.sockets[0]?.send('{"type":"response.created"}')
    upstream.sockets[0]?.send('{"type":"response.done"}')
    await received
    const running = await scraper.untilValue('gateway_realtime_events_total', { from: 'upstream' }, 2)
    expect(valueOf(running, 'gateway_realtime_bytes_total', { from: 'upstream' })).toBe(27 + 24)
    await scraper.untilValue('gateway_realtime_bytes_total', { from: 'client' }, event.length)

    client.close()
    const ended = await scraper.untilValue('gateway_requests_in_flight', { family: 'realtime' }, 0)
    expect(valueOf(ended, 'gateway_realtime_sessions')).toBe(0)
    expect(valueOf(ended, 'gateway_received_bytes_total', { family: 'realtime' })).toBe(event.length)
    const labels = { route: '/v1/realtime', method: 'GET', status: '101', outcome: 'ok' }
    expect(valueOf(ended, 'gateway_requests_total', labels)).toBe(1)
  })
})

describe('A scrape of a gateway with tasks', () => {
  let lab: VidgenGateway
  let scraper: Scraper

  beforeAll(async () => {
    lab = await startVidgenGateway({ tasks: { pollIntervalMs: 50 }, sections: await scrapable() })
    scraper = await startScraper(lab.gateway.application)
  }, STORE_START_MS)
  afterAll(async () => {
    await scraper.close()
    await lab.close()
  })

  it('shows how many stand where, and what became of tasks and callbacks', async () => {
    const caller = new VideoCaller(lab.gateway)
    const [first] = [await caller.created({ callback_url: lab.receiver.url() }), await caller.created()]
    const scrape = await scraper.scrape()
    expect(valueOf(scrape, 'gateway_store_up')).toBe(1)
    expect(valueOf(scrape, 'gateway_tasks', { state: 'submitted' })).toBe(2)
    expect(valueOf(scrape, 'gateway_tasks', { state: 'processing' })).toBe(0)
    expect(valueOf(scrape, 'gateway_callbacks', { state: 'exhausted' })).toBe(0)
    lab.simulator.settle(first, 'succeed')
    await lab.receiver.has(1)
    const later = await scraper.untilValue('gateway_callback_attempts_total', { outcome: 'delivered' }, 1)
    expect(valueOf(later, 'gateway_tasks_ended_total', { state: 'succeed' })).toBe(1)
    expect(valueOf(later, 'gateway_tasks_ended_total', { state: 'failed' })).toBe(0)
  })
})

describe('A scrape while the store does not answer', () => {
  let postgres: TestPostgres
  let proxy: HoldingProxy
  let lab: VidgenGateway
  let scraper: Scraper

  beforeAll(async () => {
    postgres = await startPostgres()
    const url = new URL(await postgres.emptyDatabase())
    proxy = await startHoldingProxy(Number(url.port))
    url.port = String(proxy.port)
    lab = await startVidgenGateway({ sections: { ...(await scrapable()), database: { url: url.href } } })
    scraper = await startScraper(lab.gateway.application)
  }, STORE_START_MS)
  afterAll(async () => {
    proxy.release()
    await scraper.close()
    await lab.close()
    await proxy.close()
    await postgres.close()
  })

  it('is answered all the same, without the counts, which are there once it answers', async () => {
    await new VideoCaller(lab.gateway).created()
    proxy.hold()
    const without = await scraper.scrape()
    expect(without.get('gateway_tasks')?.samples).toEqual([])
    expect(without.get('gateway_requests_total')?.samples.length).toBeGreaterThan(0)
    expect(valueOf(without, 'gateway_collect_failures_total')).toBe(0)
    proxy.release()
    await scraper.untilValue('gateway_tasks', { state: 'submitted' }, 1)
  })
})
