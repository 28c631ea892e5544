import { once } from 'node:events'
import type { WebSocket } from 'ws'
import type { LimitsAnswer } from '../../src/account/limits.service.js'
import { askLimits } from './asked-limits.js'
import { startGateway, type TestGateway } from './gateway.js'
import { type RealtimeEvent, RealtimeProbe } from './realtime-probe.js'
import { realtimeChannel, type RealtimeUpstream, startRealtimeUpstream } from './realtime-upstream.js'

/** The one key, which has these limits, of a gateway with one realtime upstream; it is its own id. */
const TEAM = 'team'

export interface LimitedRealtime {
  readonly gateway: TestGateway
  readonly upstream: RealtimeUpstream
  readonly close: () => Promise<void>
}

export async function startLimitedRealtime(limits: object, sections: object = {}): Promise<LimitedRealtime> {
  const upstream = await startRealtimeUpstream()
  const channels = [realtimeChannel(upstream)]
  const gateway = await startGateway({ channels, keys: [{ id: TEAM, key: TEAM, limits }], sections })
  return {
    gateway,
    upstream,
    close: async () => {
      await gateway.close()
      await upstream.close()
    },
  }
}

/** What an upstream says. */
export interface UpstreamEvent {
  readonly type: string
  readonly [name: string]: unknown
}

/** A session of a key with limits: the client, and the upstream's end. */
export interface LimitedSession {
  readonly client: RealtimeProbe
  readonly upstream: WebSocket
  /** Types of all that has reached the upstream. */
  readonly heard: readonly string[]
}

export async function openSession(
  { url }: TestGateway,
  upstream: RealtimeUpstream,
  key = TEAM,
): Promise<LimitedSession> {
  const client = await RealtimeProbe.open({ url: url.replace('http', 'ws'), key })
  const socket = upstream.sockets.at(-1)
  if (socket === undefined) throw new Error('nobody was dialled')
  const heard: string[] = []
  socket.on('message', (message: Buffer) => heard.push((JSON.parse(message.toString()) as { type: string }).type))
  return { client, upstream: socket, heard }
}

/** Sends, and resolves once whatever was sent has been judged: an event behind it has reached the upstream. */
export async function judged({ client, upstream, heard }: LimitedSession, ...events: RealtimeEvent[]): Promise<void> {
  const last = 'input_audio_buffer.clear'
  const before = heard.filter((type) => type === last).length
  for (const event of [...events, { type: last }]) client.send(event)
  while (heard.filter((type) => type === last).length === before) await once(upstream, 'message')
}

export async function limitsOf({ url }: TestGateway, key = TEAM): Promise<LimitsAnswer['limits']> {
  return (await askLimits(url, key)).limits
}

/** What is left of a limit by the minute. */
export const leftOf = async (gateway: TestGateway, name: string, key = TEAM): Promise<number | undefined> =>
  (await limitsOf(gateway, key))[name]?.remaining

/** Asks for an answer of so many tokens at most. */
export const createOf = (mostTokens: number): RealtimeEvent => ({
  type: 'response.create',
  event_id: 'mine',
  response: { max_output_tokens: mostTokens },
})

/** What that reserves as the first event of a session: a token for four bytes of it, and all that it may answer. */
export const costOf = (mostTokens: number): number =>
  Math.ceil(JSON.stringify(createOf(mostTokens)).length / 4) + mostTokens

export const CREATED = { type: 'response.created', response: { id: 'resp_1' } }

/** The end of an answer; `tokens` undefined where the upstream does not say what it has used; `others` of its response. */
export const doneWith = (tokens: number | undefined, status = 'completed', others: object = {}): UpstreamEvent => {
  const usage = tokens === undefined ? null : { total_tokens: tokens, input_tokens: tokens, output_tokens: 0 }
  return { type: 'response.done', response: { id: 'resp_1', status, usage, ...others } }
}

/** Sends what an upstream says, and resolves once its client has heard it. */
export async function say({ client, upstream }: LimitedSession, event: UpstreamEvent): Promise<void> {
  upstream.send(JSON.stringify(event))
  await client.next(event.type)
}

/** Answers that the upstreams of these sessions were asked for. */
export const createsOf = (sessions: readonly LimitedSession[]): number =>
  sessions.flatMap(({ heard }) => heard).filter((type) => type === 'response.create').length
