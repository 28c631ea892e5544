import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { startGateway, TEST_KEY } from '../support/gateway.js'
import { realtimeChannel, startRealtimeUpstream } from '../support/realtime-upstream.js'
import { REALTIME_PATH } from '../support/upgrade-client.js'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Conversation {
  readonly client: WebSocket
  /** The upstream's end. */
  readonly upstream: WebSocket
}

async function converse(limits: object = {}): Promise<Conversation> {
  const upstream = await startRealtimeUpstream()
  closers.push(() => upstream.close())
  const gateway = await startGateway({ channels: [realtimeChannel(upstream)], sections: { limits } })
  closers.push(() => gateway.close())
  const client = new WebSocket(gateway.url.replace('http', 'ws') + REALTIME_PATH, {
    headers: { authorization: `Bearer ${TEST_KEY}` },
  })
  closers.push(() => {
    client.terminate()
    return Promise.resolve()
  })
  await once(client, 'open')
  return { client, upstream: upstream.sockets[0] as WebSocket }
}

const nextMessage = async (socket: WebSocket): Promise<string> => {
  const [message] = (await once(socket, 'message')) as [Buffer]
  return message.toString()
}

const append = (bytes: number): string =>
  JSON.stringify({ type: 'input_audio_buffer.append', event_id: 'ev_1', audio: Buffer.alloc(bytes).toString('base64') })

const AUDIO_BYTES = 15 * 1024 * 1024
const FRAME_BYTES = 21 * 1024 * 1024

describe('an event with as much audio as the specification allows', () => {
  it('reaches the upstream whole', async () => {
    const { client, upstream } = await converse()
    const text = append(AUDIO_BYTES)
    client.send(text)
    expect((await nextMessage(upstream)) === text).toBe(true)
  })

  it('and some more is answered by an error, and the session goes on', async () => {
    const { client, upstream } = await converse()
    client.send(append(AUDIO_BYTES + 1))
    client.send('{"type":"input_audio_buffer.commit"}')
    const [refusal, passed] = await Promise.all([nextMessage(client), nextMessage(upstream)])
    expect(JSON.parse(refusal)).toMatchObject({
      type: 'error',
      error: { code: 'string_above_max_length', param: 'audio', event_id: 'ev_1' },
    })
    expect(passed).toBe('{"type":"input_audio_buffer.commit"}')
  })
})

describe('a message that is too long', () => {
  it.each([
    ['by default', {}, FRAME_BYTES],
    ['by the configuration', { realtimeFrameBytes: 1000 }, 1000],
  ])('%s ends the session with 1009', async (_name, limits, bytes) => {
    const { client, upstream } = await converse(limits)
    const ended = Promise.all([once(client, 'close'), once(upstream, 'close')])
    // A frame tells its length first; the rest need not be sent.
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    head.writeUInt32BE(bytes + 1, 6)
    ;(Reflect.get(client, '_socket') as { write(data: Buffer): void }).write(head)
    expect((await ended).map(([code]) => code as number)).toEqual([1009, 1000])
  })
})

describe('a message in too many fragments', () => {
  it.each([
    ['by default', {}, 1024],
    ['by the configuration', { realtimeFragments: 4 }, 4],
  ])('%s ends the session with 1008', async (_name, limits, fragments) => {
    const { client, upstream } = await converse(limits)
    const ended = Promise.all([once(client, 'close'), once(upstream, 'close')])
    for (let sent = 0; sent <= fragments; sent++) client.send(' ', { fin: false })
    expect((await ended).map(([code]) => code as number)).toEqual([1008, 1000])
  })

  it('and not one more is an event', async () => {
    const { client, upstream } = await converse({ realtimeFragments: 4 })
    const text = '{"type":"input_audio_buffer.commit"}'
    for (const [index, piece] of [text.slice(0, 5), '', text.slice(5, 9), text.slice(9)].entries())
      client.send(piece, { fin: index === 3 })
    expect(await nextMessage(upstream)).toBe(text)
  })
})
