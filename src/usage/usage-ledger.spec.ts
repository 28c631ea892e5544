import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { away } from '../../test/support/memory-usage.js'
import {
  chatCall,
  endedVideo,
  OK,
  type UsageLedgerLab,
  usageLedgerLab,
  type UsageLedgerOptions,
} from '../../test/support/usage-ledger-lab.js'
import { Call } from '../core/request-context.js'

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
  it('has a record of every call that is over', async () => {
    lab.chat()
    lab.endings.over(new Call('req_2', 'GET', '/health/live', 0), OK)
    expect(await lab.rows()).toMatchObject([{ requestId: 'req_1', model: 'gpt-4o', units: { promptTokens: 10 } }])
  })

  it('writes by itself after a while', async () => {
    await begin({ usage: { batchMs: 1 } })
    const { chat, store } = lab
    chat()
    await eventually(() => store.rows.size === 1)
    chat()
    await eventually(() => store.rows.size === 2)
  })

  it('makes no record while a call ends, however many end at once, and has all of them soon', async () => {
    await begin({ usage: { batchMs: 60_000, batchRows: 1 } })
    const { chat, store } = lab
    for (let count = 0; count < 220; count++) chat()
    expect(store.batches).toEqual([])
    // What is short of a portion waits for company.
    await eventually(() => store.rows.size >= 200)
    expect(await lab.rows()).toHaveLength(220)
  })

  it('has one of every answer of a session and every transcription in it, each at its own price', async () => {
    await begin({
      prices: [
        { models: ['*'], kind: 'input_transcription', audioSeconds: '1' },
        { models: ['gpt-realtime'], promptTokens: '2', completionTokens: '0' },
      ],
    })
    const { endings, ledger, lines } = lab
    const call = new Call('req_1', 'GET', '/v1/realtime', 0)
    call.caller = { keyId: 'team-a' }
    const common = { call, channelId: 'p1-main', model: 'gpt-realtime', estimated: false }
    const heard = { estimate: { output_tokens: 4 } }
    ledger.record({ ...common, ...heard, kind: 'response', units: { input_tokens: 1_000_000, output_tokens: 3 } })
    ledger.record({ ...common, kind: 'input_transcription', units: { seconds: 2 } })
    call.log.usage = { units: { input_tokens: 1_000_000 }, estimated: false }
    Object.assign(call.log, { model: 'gpt-realtime' })
    endings.over(call, { ...OK, status: 101 })
    expect(await lab.rows()).toMatchObject([
      { kind: 'response', cost: '2', requestId: 'req_1', keyId: 'team-a', estimated: '{"output_tokens":4}' },
      { kind: 'input_transcription', cost: '2', units: { audioSeconds: 2 }, estimated: null },
      { kind: 'request', units: {}, pricing: 'free', outcome: 'ok' },
    ])
    const logged = lines.filter(({ msg }) => msg === 'usage')
    expect(logged).toMatchObject([{ requestId: 'req_1', kind: 'response' }, { kind: 'input_transcription' }])
  })

  it('goes on after a note that cannot be made a record', async () => {
    const bad = chatCall()
    bad.log.usage = { units: { prompt_tokens: 1n as never }, estimated: false }
    lab.endings.over(bad, OK)
    lab.chat()
    expect(await lab.rows()).toHaveLength(1)
    expect(lab.lines).toMatchObject([{ msg: 'usage could not be recorded' }])
  })
})

describe('The end of the process', () => {
  it('writes everything before the end', async () => {
    const { chat, ledger, store } = lab
    for (let count = 0; count < 123; count++) chat()
    await ledger.beforeApplicationShutdown()
    expect(store.rows.size).toBe(123)
    // A task whose end was written down while loops were stopping.
    ledger.taskEnded(endedVideo())
    await eventually(() => store.rows.size === 124)
  })

  it('begins to write before any other work ends, and waits no longer than for the store', async () => {
    const { chat, ledger, store } = lab
    for (let count = 0; count < 3; count++) chat()
    ledger.onModuleDestroy()
    await eventually(() => store.rows.size === 3)
    await ledger.beforeApplicationShutdown()
  })

  it('keeps what was noted a moment before, in whatever way it comes', async () => {
    const others = process.listeners('exit')
    await begin({})
    const own = process.listeners('exit').filter((listener) => !others.includes(listener))
    expect(own).toHaveLength(1)
    const { chat, ledger, store, spilled } = lab
    store.before = away
    for (let count = 0; count < 70; count++) chat()
    for (const listener of own) listener(1)
    expect(await spilled()).toHaveLength(70)
    ledger.onApplicationShutdown()
    expect(process.listeners('exit').filter((listener) => own.includes(listener))).toEqual([])
  })
})
