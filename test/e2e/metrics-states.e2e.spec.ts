import { afterEach, describe, expect, it } from '@jest/globals'
import { ask } from '../support/breaker-lab.js'
import { eventually } from '../support/eventually.js'
import { startP1Gateway } from '../support/p1-gateway.js'
import { valueOf } from '../support/prometheus-text.js'
import { scrapable, type Scrape, startScraper } from '../support/scrapes.js'
import { STORE_START_MS } from '../support/stores.js'
import { POLLED_OFTEN, startVidgenGateway } from '../support/task-gateways.js'
import { type ShownDelivery, VideoCaller } from '../support/video-caller.js'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** The number of each channel's state. */
const breakersIn = (scrape: Scrape): (number | undefined)[] =>
  ['first', 'second'].map((channel) => valueOf(scrape, 'gateway_breaker_state', { channel }))

describe('A scrape while a channel fails and is well again', () => {
  it('tells that its breaker is closed (0), open (2), half open (1), and closed again', async () => {
    const sections = { ...(await scrapable()), breaker: { failures: 1, coolDownMs: 500 } }
    const lab = await startP1Gateway({ withSecond: true, sections })
    closers.push(() => lab.close())
    const scraper = await startScraper(lab.gateway.application)
    closers.push(() => scraper.close())
    expect(breakersIn(await scraper.scrape())).toEqual([0, 0])
    lab.simulator.queueFault('500')
    await ask(lab.gateway)
    expect(breakersIn(await scraper.scrape())).toEqual([2, 0])
    const cooled = await scraper.scrapeUntil((scrape) => breakersIn(scrape)[0] !== 2)
    expect(breakersIn(cooled)).toEqual([1, 0])
    await ask(lab.gateway)
    expect(breakersIn(await scraper.scrape())).toEqual([0, 0])
  })
})

describe('A scrape while callbacks fail', () => {
  it(
    'tells how many wait for another attempt and how many were given up, in the store and by this process',
    async () => {
      const callbacks = { scheduleMs: [0, 3_600_000] }
      const lab = await startVidgenGateway({ tasks: POLLED_OFTEN, callbacks, sections: await scrapable() })
      closers.push(() => lab.close())
      const scraper = await startScraper(lab.gateway.application)
      closers.push(() => scraper.close())
      lab.receiver.answer = (response, { path }) => response.writeHead(path === '/gone' ? 410 : 500).end()
      const caller = new VideoCaller(lab.gateway)
      const create = (path: string) => caller.created({ callback_url: lab.receiver.url(path) })
      const ids = [await create('/gone'), await create('/busy'), await create('/busy')]
      const delivery = async (id: string): Promise<ShownDelivery | undefined> =>
        (await caller.deliveries(id)).body.data[0]
      for (const id of ids) lab.simulator.settle(id, 'succeed')
      // The store is counted at the first scrape, and then not for some seconds.
      await eventually(async () => {
        const deliveries = await Promise.all(ids.map(delivery))
        return deliveries.every((shown) => shown?.attempts === 1)
      })
      const scrape = await scraper.scrape()
      const stored = ['waiting', 'exhausted'].map((state) => valueOf(scrape, 'gateway_callbacks', { state }))
      expect(stored).toEqual([2, 1])
      const attempts = ['delivered', 'retry', 'exhausted'].map((outcome) =>
        valueOf(scrape, 'gateway_callback_attempts_total', { outcome }),
      )
      expect(attempts).toEqual([0, 2, 1])
    },
    STORE_START_MS,
  )
})
