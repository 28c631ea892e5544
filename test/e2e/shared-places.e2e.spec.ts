import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import type { FairShare } from '../../src/core/fair-share.js'
import { FetchesInFlight } from '../../src/document/document-fetch.js'
import { Admission } from '../../src/overload/admission.js'
import { SessionSlots } from '../../src/realtime/realtime.service.js'
import { startDocumentLab } from '../support/document-lab.js'
import { eventually } from '../support/eventually.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import { closeAfterEach } from '../support/lab-lifetime.js'
import { startRawUpstream } from '../support/raw-upstream.js'
import { connectRealtime, startRealtimeLab } from '../support/realtime-upstream.js'

const KEYS = ['greedy', 'modest', 'late'].map((id) => ({ id, key: `key-of-${id}` }))
const PLACES = 8

/** Takes a place for a key; the result gives it back, undefined = it was refused. */
type Take = (key: string) => Promise<(() => void) | undefined>

interface Shared {
  readonly take: Take
  readonly places: FairShare
}

const opened = closeAfterEach()

/** Requests that keep their place: `underWay` of them have reached what they wait for, the others were answered. */
const takeByRequest =
  ({ url }: TestGateway, path: string, body: object, underWay: () => number): Take =>
  async (key) => {
    const leave = new AbortController()
    opened(() => {
      leave.abort()
    })
    let status = 0
    const before = underWay()
    const headers = { authorization: `Bearer key-of-${key}`, 'content-type': 'application/json' }
    void fetch(url + path, { method: 'POST', body: JSON.stringify(body), headers, signal: leave.signal }).then(
      (answer) => (status = answer.status),
      () => undefined,
    )
    await eventually(() => underWay() > before || status !== 0)
    if (status === 0)
      return () => {
        leave.abort()
      }
    expect(status).toBe(503)
    return undefined
  }

async function requestsUnderWay(): Promise<Shared> {
  let requests = 0
  const { port } = opened(await startRawUpstream(() => requests++))
  const channel = { id: 'only', provider: 'p1', credentials: 'k', models: ['m'], baseUrl: `http://127.0.0.1:${port}` }
  const sections = { admission: { concurrentRequests: PLACES } }
  const gateway = opened(await startGateway({ channels: [channel], keys: KEYS, sections }))
  const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
  return {
    take: takeByRequest(gateway, '/v1/chat/completions', body, () => requests),
    places: gateway.application.get(Admission).places,
  }
}

async function documentFetches(): Promise<Shared> {
  const { gateway, target } = opened(
    await startDocumentLab({ keys: KEYS, sections: { documents: { fetchesInFlight: PLACES } } }),
  )
  let pages = 0
  const take: Take = (key) => {
    const path = `/${pages++}`
    target.answers.set(path, () => undefined)
    return takeByRequest(gateway, '/v1/document/parse', { url: target.url(path) }, () => target.heads.length)(key)
  }
  return { take, places: gateway.application.get(FetchesInFlight).places }
}

async function realtimeSessions(): Promise<Shared> {
  const { gateway } = opened(
    await startRealtimeLab(
      { keys: KEYS, sections: { limits: { realtimeSessions: PLACES } } },
      { models: ['gpt-realtime'] },
    ),
  )
  const take: Take = async (key) => {
    const client = connectRealtime(gateway, { authorization: `Bearer key-of-${key}` })
    opened(() => {
      client.terminate()
    })
    const isOpen = await once(client, 'open').then(
      () => true,
      () => false,
    )
    if (!isOpen) return undefined
    return () => {
      client.terminate()
    }
  }
  return { take, places: gateway.application.get(SessionSlots).places }
}

describe.each([
  { what: 'requests under way', start: requestsUnderWay },
  { what: 'document fetches', start: documentFetches },
])('Places for $what', ({ start }) => {
  it('are not all for one caller, and not for one above its share while others ask', async () => {
    const { take, places } = await start()
    const held: (() => void)[] = []
    for (let place = await take('greedy'); place !== undefined; place = await take('greedy')) held.push(place)
    // The last eighth is for callers that hold next to nothing.
    expect(held).toHaveLength(PLACES - 1)
    expect(await take('modest')).toBeDefined()
    expect(await take('late')).toBeUndefined()
    for (const place of held.splice(0, 2)) place()
    await eventually(() => places.held === PLACES - 2)
    // There is room, but others hold some and ask for more.
    expect(await take('greedy')).toBeUndefined()
    expect(await take('late')).toBeDefined()
    expect(places.refused).toBeGreaterThan(0)
  })
})

describe('Places for realtime sessions', () => {
  it('are for no caller beyond its share, as they are held for long', async () => {
    const { take, places } = await realtimeSessions()
    const takeAll = async (key: string): Promise<number> => {
      let taken = 0
      while ((await take(key)) !== undefined) taken++
      return taken
    }
    expect(await takeAll('greedy')).toBe(PLACES / 2)
    expect(places.refused).toBe(1)
    // The last eighth is for callers that hold next to nothing.
    expect(await takeAll('modest')).toBe(PLACES / 2 - 1)
    expect(await takeAll('late')).toBe(1)
  })
})
