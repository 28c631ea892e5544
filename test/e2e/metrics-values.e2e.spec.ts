import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from '@jest/globals'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { documentPart, startDocumentLab } from '../support/document-lab.js'
import { startGateway } from '../support/gateway.js'
import { childrenOf } from '../support/parser-pools.js'
import { valueOf } from '../support/prometheus-text.js'
import { sendRaw } from '../support/raw-http.js'
import { startRawUpstream } from '../support/raw-upstream.js'
import { scrapable, type Scraper, startScraper } from '../support/scrapes.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** Whatever was opened last is closed first. */
function closedAtLast<Part extends { close(): Promise<unknown> }>(part: Part): Part {
  closers.push(() => part.close())
  return part
}

const scraperOf = async (application: Parameters<typeof startScraper>[0]): Promise<Scraper> =>
  closedAtLast(await startScraper(application))

describe('A scrape after chats whose upstream says what they used', () => {
  it('tells the sums of their tokens by unit, class and channel', async () => {
    const usages = [
      { prompt_tokens: 17, completion_tokens: 5, total_tokens: 22 },
      { prompt_tokens: 4, completion_tokens: 9, total_tokens: 13, prompt_tokens_details: { cached_tokens: 3 } },
    ]
    const upstream = closedAtLast(
      await startRawUpstream((socket) => {
        const answer = JSON.stringify({ id: 'c', object: 'chat.completion', choices: [], usage: usages.shift() })
        const head = `content-type: application/json\r\ncontent-length: ${answer.length}`
        socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${answer}`)
      }),
    )
    const channel = { id: 'told', provider: 'p1', baseUrl: `http://127.0.0.1:${upstream.port}`, credentials: 'k' }
    const gateway = closedAtLast(await startGateway({ channels: [channel], sections: await scrapable() }))
    const scraper = await scraperOf(gateway.application)
    for (const text of ['one', 'two']) await sendRaw(gateway.url, { path: CHAT_PATH, body: chatText(text) })
    const of = { class: 'chat', channel: 'told' }
    const scrape = await scraper.untilValue('gateway_usage_units_total', { unit: 'completion_tokens', ...of }, 14)
    expect(valueOf(scrape, 'gateway_usage_units_total', { unit: 'prompt_tokens', ...of })).toBe(21)
    expect(valueOf(scrape, 'gateway_usage_units_total', { unit: 'cached_tokens', ...of })).toBe(3)
    expect(scrape.get('gateway_usage_units_total')?.samples.length).toBe(3)
  })
})

/** The one process of this gateway that reads documents. */
function enginePid(): number {
  const engines = childrenOf(process.pid).filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('engine.process.js'),
  )
  const [pid] = engines
  if (pid === undefined || engines.length > 1) throw new Error(`there are ${engines.length} engines, not one`)
  return pid
}

describe('A scrape while the one process that reads documents stands still', () => {
  it('tells how many documents it reads, and how many wait for it', async () => {
    const sections = { ...(await scrapable()), documents: { processes: 1, queue: 4 } }
    const lab = closedAtLast(await startDocumentLab({ sections }))
    const scraper = await scraperOf(lab.gateway.application)
    const read = async (name: string): Promise<number> =>
      (await lab.upload([documentPart(`<title>${name}</title><p>${name}</p>`, `${name}.html`, 'text/html')])).status
    expect(await read('first')).toBe(200)
    const idle = await scraper.untilValue('gateway_documents', { state: 'reading' }, 0)
    expect(valueOf(idle, 'gateway_documents', { state: 'waiting' })).toBe(0)

    const engine = enginePid()
    process.kill(engine, 'SIGSTOP')
    const held = ['second', 'third', 'fourth'].map(read)
    try {
      const full = await scraper.untilValue('gateway_documents', { state: 'waiting' }, 2)
      expect(valueOf(full, 'gateway_documents', { state: 'reading' })).toBe(1)
    } finally {
      process.kill(engine, 'SIGCONT')
    }
    expect(await Promise.all(held)).toEqual([200, 200, 200])
    const done = await scraper.untilValue('gateway_documents', { state: 'reading' }, 0)
    expect(valueOf(done, 'gateway_documents', { state: 'waiting' })).toBe(0)
  })
})

describe('A scrape while upstreams and receivers keep their answers back', () => {
  it(
    'tells how many tasks are being asked for, and how many callbacks are on their way',
    async () => {
      const tasks = { pollIntervalMs: 50 }
      const lab = closedAtLast(await startVidgenGateway({ tasks, sections: await scrapable() }))
      const scraper = await scraperOf(lab.gateway.application)
      const held: ServerResponse[] = []
      lab.receiver.answer = (response) => held.push(response)
      const caller = new VideoCaller(lab.gateway)
      const ids = [await caller.created({ callback_url: lab.receiver.url() }), await caller.created()]
      lab.proxy.hold()
      const asking = await scraper.untilValue('gateway_background_work', { kind: 'polls' }, 2)
      expect(valueOf(asking, 'gateway_background_work', { kind: 'callbacks' })).toBe(0)

      for (const id of ids) lab.simulator.settle(id, 'succeed')
      lab.proxy.release()
      await lab.receiver.has(1)
      const telling = await scraper.untilValue('gateway_background_work', { kind: 'polls' }, 0)
      expect(valueOf(telling, 'gateway_background_work', { kind: 'callbacks' })).toBe(1)

      for (const response of held) response.writeHead(204).end()
      await scraper.untilValue('gateway_background_work', { kind: 'callbacks' }, 0)
    },
    STORE_START_MS,
  )
})
