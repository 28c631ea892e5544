import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { type P1Gateway, startP1Gateway } from '../support/p1-gateway.js'
import { seriesOf, valueOf } from '../support/prometheus-text.js'
import { openRaw, sendRaw } from '../support/raw-http.js'
import { type Scrape, type Scraper, scrapable, startScraper } from '../support/scrapes.js'

const DELAY_MS = 120
const CHAT = { route: CHAT_PATH, method: 'POST' }

let lab: P1Gateway
let scraper: Scraper

beforeEach(async () => {
  lab = await startP1Gateway({ withSecond: true, sections: await scrapable() })
  scraper = await startScraper(lab.gateway.application)
})

afterEach(async () => {
  await scraper.close()
  await lab.close()
})

const post = (text: string, more: object = {}) =>
  sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText(text, more) })

const requests = (scrape: Scrape, labels: Readonly<Record<string, string>>): number =>
  valueOf(scrape, 'gateway_requests_total', labels) ?? 0

describe('A scrape after requests', () => {
  it('counts an answer by its route, with what it took and what it moved', async () => {
    const body = chatText('hello')
    const answer = await sendRaw(lab.gateway.url, { path: `${CHAT_PATH}?x=1`, body })
    const scrape = await scraper.untilValue('gateway_requests_total', { ...CHAT, status: '200', outcome: 'ok' }, 1)
    expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'first', outcome: 'ok' })).toBe(1)
    expect(valueOf(scrape, 'gateway_received_bytes_total', { family: 'chat' })).toBe(Buffer.byteLength(body))
    expect(valueOf(scrape, 'gateway_sent_bytes_total', { family: 'chat' })).toBe(answer.body.length)
    expect(valueOf(scrape, 'gateway_requests_in_flight', { family: 'chat' })).toBe(0)
    expect(valueOf(scrape, 'gateway_breaker_state', { channel: 'first' })).toBe(0)
    expect(scrape.get('gateway_failures_total')?.samples.filter(({ value }) => value > 0)).toEqual([])
  })

  it('says how long each part took, never less than the upstream did', async () => {
    lab.simulator.queueFault({ kind: 'delay', ms: DELAY_MS })
    await post('hello')
    const counted = { route: CHAT_PATH, phase: 'total' }
    const scrape = await scraper.untilValue('gateway_request_seconds_count', counted, 1)
    const seconds = (phase: string): number =>
      valueOf(scrape, 'gateway_request_seconds_sum', { route: CHAT_PATH, phase }) ?? 0
    // Timers may ring a millisecond early.
    const leastSeconds = (DELAY_MS - 1) / 1000
    for (const phase of ['first_byte', 'upstream', 'total']) expect(seconds(phase)).toBeGreaterThanOrEqual(leastSeconds)
    expect(seconds('total')).toBeGreaterThanOrEqual(seconds('upstream') + seconds('receive'))
    expect(seconds('gateway')).toBeLessThanOrEqual(seconds('total') - seconds('upstream') + 1e-9)
    const faster = { route: CHAT_PATH, phase: 'upstream', le: '0.1' }
    expect(valueOf(scrape, 'gateway_request_seconds_bucket', faster)).toBe(0)
  })

  it('counts every attempt by its channel, and how it failed', async () => {
    lab.simulator.queueFault('500')
    await post('hello')
    lab.simulator.queueFault('reset')
    await post('hello')
    const scrape = await scraper.untilValue('gateway_requests_total', { ...CHAT, status: '200', outcome: 'ok' }, 2)
    expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'first', outcome: 'upstream_failed' })).toBe(2)
    expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'second', outcome: 'ok' })).toBe(2)
  })

  it('tells what the caller, the upstream and nobody did wrong', async () => {
    await post('hello', { model: 'no-such-model' })
    await post('#400')
    await post('#cut', { stream: true })
    const scrape = await scraper.untilValue(
      'gateway_requests_total',
      { ...CHAT, status: '200', outcome: 'upstream_failed' },
      1,
    )
    expect(requests(scrape, { ...CHAT, status: '404', outcome: 'refused' })).toBe(1)
    expect(requests(scrape, { ...CHAT, status: '400', outcome: 'refused' })).toBe(1)
    // The stream had begun when its upstream cut it off: the attempt that seemed to succeed did not.
    expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'first', outcome: 'upstream_failed' })).toBe(1)
    expect(valueOf(scrape, 'gateway_failures_total', { kind: 'unknown_model' })).toBe(1)
  })

  it('shows what is under way, and that its caller left', async () => {
    const stream = await openRaw(lab.gateway.url, {
      path: CHAT_PATH,
      body: chatText('#chunks=10000000', { stream: true }),
    })
    await scraper.untilValue('gateway_requests_in_flight', { family: 'chat' }, 1)
    stream.destroy()
    const scrape = await scraper.untilValue('gateway_requests_in_flight', { family: 'chat' }, 0)
    expect(requests(scrape, { ...CHAT, status: '499', outcome: 'left' })).toBe(1)
    expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'first', outcome: 'ok' })).toBe(1)
  })

  it('shows a breaker that has opened', async () => {
    for (let failures = 0; failures < 3; failures++) {
      lab.simulator.queueFault('500')
      await post('hello')
    }
    await scraper.untilValue('gateway_breaker_state', { channel: 'first' }, 2)
  })
})

describe('Hostile callers', () => {
  it('add no series, whatever paths, methods, models and ids they make up', async () => {
    const send = async (index: number): Promise<void> => {
      await sendRaw(lab.gateway.url, { method: 'GET', path: `/made/up/${index}` })
      await sendRaw(lab.gateway.url, { method: 'GET', path: `/v1/models/made-up-${index}` })
      await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('x', { model: `made-up-${index}` }) })
      await sendRaw(lab.gateway.url, {
        path: CHAT_PATH,
        headers: { authorization: `Bearer made-up-${index}` },
        body: '{}',
      })
      const method = ['PUT', 'DELETE', 'PROPFIND', 'MKCOL', 'SUBSCRIBE'][index % 5] ?? 'PUT'
      await sendRaw(lab.gateway.url, { method, path: CHAT_PATH })
    }
    const seriesIn = (scrape: Scrape): string[] =>
      [...scrape.values()].flatMap(({ samples }) => samples.map(seriesOf)).sort()
    // Each kind once, with each of the methods: from then on there is nothing new.
    for (let index = 0; index < 5; index++) await send(index)
    const other = { route: 'other', method: 'other', status: '404', outcome: 'refused' }
    // What the event loop and the garbage collector are like is watched from the first scrape on.
    await scraper.scrape()
    await scraper.untilValue('gateway_requests_total', other, 5)
    // Records of use are written behind.
    const isRecorded = (scrape: Scrape): boolean => scrape.get('gateway_usage_records_total')?.samples.length !== 0
    const before = seriesIn(await scraper.scrapeUntil(isRecorded))
    for (let index = 5; index < 205; index++) await send(index)
    const after = await scraper.untilValue('gateway_requests_total', other, 205)
    expect(seriesIn(after)).toEqual(before)
    expect(JSON.stringify([...after.values()])).not.toContain('made')
    expect(requests(after, { route: CHAT_PATH, method: 'other', status: '405', outcome: 'refused' })).toBe(205)
  })
})
