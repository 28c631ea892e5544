import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  chatCall,
  endedVideo,
  OK,
  type UsageLedgerLab,
  usageLedgerLab,
  type UsageLedgerOptions,
} from '../../test/support/usage-ledger-lab.js'

const channel = (id: string): object => ({ id, provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 'secret' })

let lab: UsageLedgerLab

async function begin(options: UsageLedgerOptions): Promise<void> {
  await lab.close()
  lab = await usageLedgerLab(options)
}

beforeEach(async () => {
  lab = await usageLedgerLab()
})
afterEach(() => lab.close())

describe('The ledger', () => {
  it('counts what was used by class and channel, and costs', async () => {
    await begin({ prices: [{ models: ['*'], promptTokens: '1000000' }] })
    const { chat, endings, samples } = lab
    chat('gpt-4o', 3)
    chat('gpt-4.1', 4)
    endings.over(chatCall(), { ...OK, left: true })
    await lab.rows()
    expect(await samples('gateway_usage_records_total')).toEqual([
      'gateway_usage_records_total{outcome="ok"} 2',
      'gateway_usage_records_total{outcome="caller_left"} 1',
    ])
    const labels = 'class="chat",channel="p1-main"'
    expect(await samples('gateway_usage_units_total')).toEqual([
      `gateway_usage_units_total{unit="prompt_tokens",${labels}} 17`,
    ])
    expect(await samples('gateway_usage_cost_total')).toEqual([`gateway_usage_cost_total{${labels}} 17`])
  })

  it('raises an alarm for use without a price: a metric each time, a line once per model', async () => {
    await begin({
      prices: [{ models: ['known'], promptTokens: '1' }],
      laterPrices: [{ models: ['other'], promptTokens: '1' }],
    })
    const { chat, samples, lines, config } = lab
    for (const model of ['known', 'a', 'a', 'b']) chat(model)
    chat('a', 0)
    await lab.rows()
    expect(await samples('gateway_usage_unpriced_total')).toEqual([
      'gateway_usage_unpriced_total{class="chat",channel="p1-main"} 3',
    ])
    const said = () => lines.filter(({ msg }) => String(msg).startsWith('no price')).map(({ model }) => model)
    expect(said()).toEqual(['a', 'b'])
    // A new table is asked anew.
    await config.reload()
    chat('a')
    chat('other')
    expect((await lab.rows()).at(-1)).toMatchObject({ model: 'other', pricing: 'priced' })
    expect(said()).toEqual(['a', 'b', 'a'])
  })

  it('is silent where there is no price table at all', async () => {
    lab.chat()
    expect(await lab.rows()).toMatchObject([{ pricing: 'unpriced', cost: null }])
    expect(await lab.samples('gateway_usage_unpriced_total')).toEqual([])
    expect(lab.lines).toEqual([])
  })

  it('has counted every call that is over when somebody asks for the metrics, whether it is written or not', async () => {
    await begin({ prices: [{ models: ['other'], promptTokens: '1' }] })
    const { chat, samples, store } = lab
    for (let count = 0; count < 70; count++) chat()
    expect(await samples('gateway_usage_unpriced_total')).toEqual([
      'gateway_usage_unpriced_total{class="chat",channel="p1-main"} 70',
    ])
    expect(await samples('gateway_usage_records_total')).toEqual(['gateway_usage_records_total{outcome="ok"} 70'])
    expect(store.batches).toEqual([])
  })

  it('forgets what a channel has used when a reload takes the channel away, and counts it no more for that', async () => {
    await begin({ channels: [channel('p1-main'), channel('other')], laterChannels: [channel('other')] })
    const { endings, samples, config } = lab
    for (const channelId of ['p1-main', 'other', undefined]) {
      const call = chatCall()
      Object.assign(call.log, { channelId })
      endings.over(call, OK)
    }
    expect(await samples('gateway_usage_units_total')).toHaveLength(3)
    lab.chat()
    await config.reload()
    expect(await samples('gateway_usage_units_total')).toEqual([
      expect.stringContaining('channel="other"'),
      expect.stringContaining('channel=""'),
    ])
    expect(await samples('gateway_usage_records_total')).toEqual(['gateway_usage_records_total{outcome="ok"} 4'])
  })

  it('makes no records where usage is not to be stored, and counts all the same', async () => {
    await begin({ usage: { store: false }, prices: [{ models: ['*'], promptTokens: '1000000' }] })
    const { chat, samples, ledger, store } = lab
    for (let count = 0; count < 70; count++) chat('gpt-4o', 2)
    await ledger.flush()
    expect(store.rows.size).toBe(0)
    expect(await samples('gateway_usage_cost_total')).toEqual([
      'gateway_usage_cost_total{class="chat",channel="p1-main"} 140',
    ])
  })

  it('prices every call by the table that was in force when it ended', async () => {
    await begin({
      prices: [{ models: ['*'], promptTokens: '1000000' }],
      laterPrices: [{ models: ['*'], promptTokens: '3000000' }],
    })
    const { chat, config } = lab
    for (let count = 0; count < 60; count++) chat('gpt-4o', 1)
    await config.reload()
    for (let count = 0; count < 60; count++) chat('gpt-4o', 1)
    const costs = (await lab.rows()).map(({ cost }) => cost)
    expect(costs).toEqual([...Array<string>(60).fill('1'), ...Array<string>(60).fill('3')])
  })
})

describe('An ended task', () => {
  it('has one of every task that ended, once, and nothing to pay for one that failed', async () => {
    await begin({ prices: [{ models: ['*'], videos: '0.35', images: '0.05' }] })
    const { ledger, store } = lab
    ledger.taskEnded(endedVideo({ reported: { final_unit_deduction: 2 } }))
    ledger.taskEnded(endedVideo({ id: 'video 2', hasSucceeded: false, reported: { final_unit_deduction: 0 } }))
    ledger.taskEnded(endedVideo({ id: 'image 3', ownerId: 'bearer:12', taskClass: 'image' }))
    ledger.taskEnded(endedVideo())
    expect(await lab.rows()).toMatchObject([
      { id: 'task video 1', kind: 'task', outcome: 'ok', units: { videos: 1 }, cost: '0.35', keyId: 'team-a' },
      { id: 'task video 2', outcome: 'upstream_failed', units: { videos: 0 }, pricing: 'free', cost: '0' },
      { id: 'task image 3', units: { images: 1 }, cost: '0.05', keyId: 'caller', ownerId: 'bearer:12' },
    ])
    expect(store.rows.get('task video 1')?.reported).toBe('{"final_unit_deduction":2,"videos":1}')
  })

  it('is priced at once for whoever writes its end down, and counts when that is written', async () => {
    await begin({ prices: [{ models: ['*'], videos: '0.35' }] })
    const { ledger, samples } = lab
    const settled = ledger.settleTask(endedVideo())
    expect(settled?.record).toMatchObject({ id: 'task video 1', kind: 'task', cost: '0.35', units: { videos: 1 } })
    expect(await samples('gateway_usage_records_total')).toEqual([])
    settled?.whenWritten()
    expect(await samples('gateway_usage_records_total')).toEqual(['gateway_usage_records_total{outcome="ok"} 1'])
    // Nothing else writes it.
    expect(await lab.rows()).toEqual([])
  })

  it('has no record where usage is not to be stored, and counts all the same', async () => {
    await begin({ usage: { store: false } })
    const settled = lab.ledger.settleTask(endedVideo())
    expect(settled).toMatchObject({ record: undefined })
    settled?.whenWritten()
    expect(await lab.samples('gateway_usage_records_total')).toEqual(['gateway_usage_records_total{outcome="ok"} 1'])
  })

  it('of which no record can be made is told of, and is none', () => {
    expect(lab.ledger.settleTask(endedVideo({ reported: { units: 1n as never } }))).toBeUndefined()
    expect(lab.lines).toMatchObject([{ msg: 'usage could not be recorded' }])
  })
})
