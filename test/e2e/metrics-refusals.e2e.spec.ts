import { connect } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { endlessWork } from '../support/endless-work.js'
import { eventually } from '../support/eventually.js'
import { CHAT, FULL, FullGateway, KeptAliveClient } from '../support/failing-calls.js'
import { TEST_KEY } from '../support/gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { scrapable, type Scrape, type Scraper, startScraper } from '../support/scrapes.js'

/** The least that can be set, and less than any process of Node has. */
const SHORT_OF_MEMORY = { admission: { memoryBytes: 67_108_864 } }
/** Served at once while memory is short. */
const PLACES_IN_SHORTAGE = 16
const NONE = { concurrency: 0, loop_delay: 0, memory: 0, bytes: 0 }

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Lab {
  readonly lab: FullGateway
  readonly scraper: Scraper
}

async function start(sections: object): Promise<Lab> {
  const lab = await FullGateway.start({ ...(await scrapable()), ...sections })
  closers.push(() => lab.close())
  const scraper = await startScraper(lab.gateway.application)
  closers.push(() => scraper.close())
  return { lab, scraper }
}

/** As many calls as that, one after the other: their statuses. */
async function statusesOf({ lab }: Lab, count: number): Promise<number[]> {
  const statuses: number[] = []
  for (let call = 0; call < count; call++) statuses.push((await sendRaw(lab.url, CHAT)).status)
  return statuses
}

/** What stands in the scrape of requests that were refused because the process could not keep up, by reason. */
function refusedIn(scrape: Scrape): Record<string, number> {
  const samples = scrape.get('gateway_admission_refused_total')?.samples ?? []
  return Object.fromEntries(samples.map(({ labels, value }) => [labels['reason'] ?? '', value]))
}

describe('A scrape after requests that the process could not keep up with', () => {
  it('tells that none was refused before one was', async () => {
    const { lab, scraper } = await start(FULL)
    expect((await sendRaw(lab.url, CHAT)).status).toBe(200)
    expect(refusedIn(await scraper.scrape())).toEqual(NONE)
  })

  it('counts those that were too many at once', async () => {
    const started = await start(FULL)
    const { answered } = await started.lab.fill()
    expect(await statusesOf(started, 3)).toEqual([503, 503, 503])
    expect(refusedIn(await started.scraper.scrape())).toEqual({ ...NONE, concurrency: 3 })
    started.lab.empty()
    expect((await answered).status).toBe(200)
    expect(refusedIn(await started.scraper.scrape())).toEqual({ ...NONE, concurrency: 3 })
  })

  it('counts those that came while memory was short', async () => {
    const started = await start(SHORT_OF_MEMORY)
    const { lab, scraper } = started
    await eventually(() => lab.admission.memoryLoad.isHigh)
    lab.hold()
    const answers = Array.from({ length: PLACES_IN_SHORTAGE }, () => sendRaw(lab.url, CHAT))
    await eventually(() => lab.held.length === PLACES_IN_SHORTAGE)
    expect(await statusesOf(started, 2)).toEqual([503, 503])
    expect(refusedIn(await scraper.scrape())).toEqual({ ...NONE, memory: 2 })
    lab.empty()
    await Promise.all(answers)
  })

  it('counts those for which the turns of the event loop were too long', async () => {
    const { lab, scraper } = await start({ admission: { loopDelayHighMs: 30, loopDelayLowMs: 10 } })
    const clients = Array.from({ length: 100 }, () => new KeptAliveClient(lab.url))
    const askAll = (): Promise<number[]> => Promise.all(clients.map(async (client) => (await client.ask()).status))
    const statuses = await askAll()
    const work = endlessWork(60)
    try {
      await eventually(() => lab.admission.loop.isShedding)
      statuses.push(...(await askAll()))
    } finally {
      work.stop()
    }
    for (const { socket } of clients) socket.destroy()
    const refused = statuses.filter((status) => status === 503).length
    expect(refused).toBeGreaterThan(0)
    expect(refusedIn(await scraper.scrape())).toEqual({ ...NONE, loop_delay: refused })
  })

  it('counts those whose bodies had no room beside what others send', async () => {
    const started = await start({ admission: { bytesInFlight: 500_000 } })
    const { lab, scraper } = started
    const stalled = connect(Number(new URL(lab.url).port), '127.0.0.1').on('error', () => undefined)
    const head = `POST ${CHAT.path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${TEST_KEY}\r\n`
    stalled.write(`${head}content-type: application/json\r\ncontent-length: 500000\r\n\r\n{`)
    await eventually(() => lab.admission.memory.bytes === 500_000)
    expect(await statusesOf(started, 2)).toEqual([503, 503])
    expect(refusedIn(await scraper.scrape())).toEqual({ ...NONE, bytes: 2 })
    stalled.destroy()
    await eventually(() => lab.admission.memory.bytes === 0)
    expect(await statusesOf(started, 1)).toEqual([200])
    expect(refusedIn(await scraper.scrape())).toEqual({ ...NONE, bytes: 2 })
  })
})
