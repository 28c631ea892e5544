import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { openRaw } from '../support/raw-http.js'
import { realtimeChannel, type RealtimeUpstream, startRealtimeUpstream } from '../support/realtime-upstream.js'
import { REALTIME_PATH } from '../support/upgrade-client.js'
import { type Cluster, CLUSTER_START_MS, DRAIN_DELAY_MS, startCluster } from './cluster.js'

const GOING_AWAY = 1001
/** Long enough for a busy machine to end an answer in. */
const GRACE_MS = 5_000
const EVENTS = 20

let upstream: Server
/** Of the request that the upstream has; it writes nothing by itself. */
let answers: ServerResponse[]
let realtime: RealtimeUpstream
let cluster: Cluster
beforeAll(async () => {
  answers = []
  upstream = createServer((incoming, answer) => {
    incoming.resume()
    answer.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    answers.push(answer)
    upstream.emit('asked')
  }).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  realtime = await startRealtimeUpstream()
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  cluster = await startCluster({
    channels: [
      { id: 'chat', provider: 'p1', baseUrl, credentials: 'upstream', models: ['gpt-4o-mini'] },
      realtimeChannel(realtime, { id: 'talk', models: ['gpt-realtime'], options: { realtimeDialect: 'beta' } }),
    ],
    sections: { timeouts: { shutdownGraceMs: GRACE_MS } },
  })
}, CLUSTER_START_MS)
afterAll(async () => {
  await cluster.close()
  await realtime.close()
  upstream.closeAllConnections()
  upstream.close()
})

interface Session {
  readonly client: WebSocket
  readonly far: WebSocket
}

/** A session through the balancer, with the upstream's end of it. */
async function openSession(): Promise<Session> {
  const before = realtime.sockets.length
  const client = new WebSocket(cluster.url.replace('http', 'ws') + REALTIME_PATH, {
    headers: { authorization: `Bearer ${TEST_KEY}`, 'openai-beta': 'realtime=v1' },
  })
  await once(client, 'open')
  const far = realtime.sockets[before]
  if (far === undefined) throw new Error('the upstream was not asked')
  return { client, far }
}

const textOf = async (socket: WebSocket): Promise<string> => String((await once(socket, 'message'))[0])

async function speaksBothWays({ client, far }: Session): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const question = JSON.stringify({ type: 'input_audio_buffer.clear', event_id: `question-${round}` })
    const heard = textOf(far)
    client.send(question)
    expect(await heard).toBe(question)
    const answer = JSON.stringify({ type: 'input_audio_buffer.cleared', event_id: `answer-${round}` })
    const told = textOf(client)
    far.send(answer)
    expect(await told).toBe(answer)
  }
}

/** The upstream says it, and the client has heard it. */
async function tell({ client, far }: Session, event: object): Promise<void> {
  const told = textOf(client)
  far.send(JSON.stringify(event))
  expect(JSON.parse(await told)).toEqual(event)
}

const BEGUN = { type: 'response.created', response: { id: 'resp_1' } }
const WORD = { type: 'response.text.delta', delta: 'Hello' }
const DONE = { type: 'response.done', response: { id: 'resp_1', status: 'completed' } }

/** A session at each replica, as the balancer gives to whoever has fewer; the one in the middle of an answer if wanted. */
async function openPair(events: readonly object[]): Promise<readonly Session[]> {
  const pair = [await openSession(), await openSession()]
  for (const session of pair) for (const event of events) await tell(session, event)
  return pair
}

describe('through the balancer', () => {
  it('each event of a stream is with the caller before the upstream writes the next one', async () => {
    const asked = once(upstream, 'asked')
    const pending = openRaw(cluster.url, { path: CHAT_PATH, body: chatText('Hi', { stream: true }) })
    await asked
    const answer = answers.at(-1)
    const event = (number: number): string =>
      `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${number}"}}]}\n\n`
    answer?.write(event(0))
    const response = (await pending).setEncoding('utf8')
    let text = ''
    for (let number = 0; number < EVENTS; number++) {
      // Without an end: whoever collects them waits for ever here.
      while (!text.includes(`"content":"${number}"`)) text += String((await once(response, 'data'))[0])
      expect(text).not.toContain(`"content":"${number + 1}"`)
      answer?.write(event(number + 1))
    }
    response.destroy()
  })

  it('a body need not have come whole for the gateway to judge its head', async () => {
    const headers = { authorization: 'Bearer nobodys', 'content-type': 'application/json', 'content-length': 1_000_000 }
    const outgoing = request(cluster.url + CHAT_PATH, { method: 'POST', headers, agent: false })
    outgoing.on('error', () => undefined)
    outgoing.write('{"model":')
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(response.statusCode).toBe(401)
    outgoing.destroy()
  })

  it('a session speaks both ways, and its end is passed on', async () => {
    const session = await openSession()
    await speaksBothWays(session)
    const ended = once(session.far, 'close')
    session.client.close(1000)
    await ended
  })

  it('a restart of one replica ends its sessions with 1001, none in mid-answer before the grace is over, and none of the other', async () => {
    const [idle, ending, endless] = [await openPair([]), await openPair([BEGUN]), await openPair([BEGUN])]
    const sessions = [...idle, ...ending, ...endless]
    const ends: { readonly client: WebSocket; readonly code: number; readonly atMs: number }[] = []
    for (const { client } of sessions) {
      client.on('close', (code) => ends.push({ client, code, atMs: performance.now() - stoppedAtMs }))
    }
    const [first] = cluster.replicas
    const endOfIdle = Promise.race(idle.map(({ client }) => once(client, 'close')))
    const endOfEnding = Promise.race(ending.map(({ client }) => once(client, 'close')))
    const stoppedAtMs = performance.now()
    const stopped = first?.stop()
    await endOfIdle
    expect(ends).toHaveLength(1)
    for (const session of [...ending, ...endless]) await tell(session, WORD)
    for (const session of ending) await tell(session, DONE)
    await endOfEnding
    expect(ends).toHaveLength(2)
    expect((await stopped)?.code).toBe(0)
    expect(ends.map(({ code }) => code)).toEqual([GOING_AWAY, GOING_AWAY, GOING_AWAY])
    const groups = [idle, ending, endless]
    expect(ends.map((end) => groups.findIndex((group) => group.some(({ client }) => client === end.client)))).toEqual([
      0, 1, 2,
    ])
    const [ofIdle, ofEnding, ofEndless] = ends.map(({ atMs }) => atMs)
    expect(ofIdle).toBeLessThan(DRAIN_DELAY_MS + GRACE_MS)
    expect(ofEnding).toBeLessThan(DRAIN_DELAY_MS + GRACE_MS)
    expect(ofEndless).toBeGreaterThanOrEqual(DRAIN_DELAY_MS + GRACE_MS - 100)
    const left = sessions.filter(({ client }) => !ends.some((end) => end.client === client))
    expect(left).toHaveLength(3)
    for (const session of [...left, await openSession()]) {
      await speaksBothWays(session)
      session.client.terminate()
    }
    await first?.start()
    await cluster.balancer.shows(1, true)
  })
})
