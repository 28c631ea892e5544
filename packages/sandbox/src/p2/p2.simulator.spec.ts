import { once } from 'node:events'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  converseP2,
  openP2,
  P2_KEY,
  P2_PATH,
  type P2Conversation,
  p2Frame,
  p2Spoken,
} from '../../test/speech-simulator-labs.js'
import type { SocketSimulator } from '../server/websocket-protocol.js'
import { startP2Simulator } from './p2.simulator.js'

const GAP_MS = 60
let simulator: SocketSimulator

beforeEach(async () => {
  simulator = await startP2Simulator({ apiKey: P2_KEY, gapMs: GAP_MS })
})
afterEach(async () => {
  await simulator.close()
})

const say = (text: string): Promise<P2Conversation> => converseP2(simulator.url, p2Spoken(text))
const kinds = ({ frames }: P2Conversation): string[] => frames.map(({ kind }) => kind)
const plain = { text: 'ni hao', frames: ['b0', 'b1', 'b1', 'b3'] }

describe('errors asked for', () => {
  it.each([3001, 3003, 3006, 3010, 3011, 3050, 9999])('#err%i comes before the ACK', async (code) => {
    const conversation = await say(`#err${code} please`)
    expect(kinds(conversation)).toEqual(['f0'])
    expect(conversation.frames[0]?.number).toBe(code)
    expect(conversation.closeCode).toBe(1000)
    expect((await endOf())?.outcome).toBe('finished')
  })

  it.each([3005, 3030, 3031, 3032, 3040])('#err%i comes after the ACK', async (code) => {
    const conversation = await say(`#err${code} please`)
    expect(kinds(conversation)).toEqual(['b0', 'f0'])
    expect(conversation.frames[1]?.number).toBe(code)
  })

  it.each([
    ['#errgrant', 3001, 'authenticate request: load grant: requested grant not found'],
    ['#errquota', 3001, 'quota exceeded for types: text_words_lifetime'],
    ['#errconcurrency', 3003, 'quota exceeded for types: concurrency'],
    ['#erraccess', 3001, 'extract request resource id: get resource id: access denied'],
    ['#errengine', 3031, 'Fail to feed text, reason Init Engine Instance failed'],
    ['#errquota #err3003', 3003, 'quota exceeded for types: text_words_lifetime'],
  ])('%s', async (text, code, words) => {
    const error = (await say(text)).frames.at(-1)
    expect([error?.number, error?.payload.toString()]).toEqual([code, words])
  })

  it('#errmid comes after two audio frames, with any code', async () => {
    const conversation = await say('#errmid hello')
    expect(kinds(conversation)).toEqual(['b0', 'b1', 'b1', 'f0'])
    expect(conversation.frames.at(-1)?.number).toBe(3031)
    expect((await say('#errmid #err3005')).frames.at(-1)?.number).toBe(3005)
  })

  it('#gziperr compresses the text', async () => {
    const error = (await say('#gziperr #err3003')).frames[0]
    expect(error?.hex).toMatch(/^11f0110000000bbb/)
    expect(gunzipSync(error?.payload ?? '').toString()).toBe('quota exceeded for types: concurrency')
    expect((await say('#gziperr')).frames.at(-1)?.number).toBe(3031)
  })

  it('#jsonerr makes a JSON object of the text', async () => {
    const error = (await say('#jsonerr #err3005')).frames.at(-1)
    expect(JSON.parse(error?.payload.toString() ?? '')).toEqual({
      reqid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      code: 3005,
      message: 'backend service is busy',
    })
  })
})

describe('odd but legal streams', () => {
  it('#noack and #bareack', async () => {
    expect(kinds(await say('#noack ni'))[0]).toBe('b1')
    expect((await say('#bareack ni')).frames[0]?.hex).toBe('11b00000')
  })

  it('#flag2 ends with flags 0x2 and the negative sequence', async () => {
    const { frames } = await say('#flag2')
    expect(frames.at(-1)?.hex).toMatch(/^11b20000fffffffd00001680/)
    expect(frames.at(-1)?.payload.length).toBe(0x1680)
  })

  it('#flag2bare ends with flags 0x2 and no sequence', async () => {
    const { frames, audio } = await say('#flag2bare')
    expect(frames.at(-1)?.hex).toMatch(/^11b20000(?!ffff)/)
    expect(frames.at(-1)?.number).toBeUndefined()
    expect(audio.length).toBe(10 * 2880)
  })

  it('#merge puts all audio into the last frame', async () => {
    const conversation = await say('#merge ni hao')
    expect(kinds(conversation)).toEqual(['b0', 'b3'])
    expect(conversation.frames[1]?.number).toBe(-1)
    expect(conversation.audio.length).toBe(13 * 2880)
  })

  it('#emptylast ends with the example of the protocol, byte for byte but for the sequence', async () => {
    const { frames } = await say('#emptylast a')
    expect(frames.at(-1)?.hex).toMatch(/^11b30000fffffff[0-9a-f]00000000$/)
  })

  it('#slow is silent after the first audio frame, but #slow has all the audio', async () => {
    const startedAtMs = performance.now()
    const { audio } = await say('#slow')
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(GAP_MS - 2)
    expect(audio.length).toBe(5 * 2880)
  })
})

describe('broken streams', () => {
  it('#cut destroys the connection after two audio frames', async () => {
    const conversation = await say('#cut hello')
    expect(kinds(conversation)).toEqual(['b0', 'b1', 'b1'])
    expect(conversation.closeCode).toBe(1006)
    expect((await endOf())?.outcome).toBe('broken')
  })

  it('#closeearly closes properly after two audio frames', async () => {
    const conversation = await say('#closeearly hello')
    expect(kinds(conversation)).toEqual(['b0', 'b1', 'b1'])
    expect(conversation.closeCode).toBe(1000)
    expect(await endOf()).toMatchObject({ outcome: 'broken', by: 'simulator' })
  })

  it('#garbage and #textframe come before the audio', async () => {
    const garbage = await say('#garbage hello')
    expect(garbage.frames[1]?.hex).toBe('11b10000000000017fffffffaabb')
    expect(garbage.frames.at(-1)?.kind).toBe('b3')
    expect((await say('#textframe')).texts).toHaveLength(1)
  })

  it('#hang says nothing until the client leaves', async () => {
    const socket = await openP2(`${simulator.url}${P2_PATH}`)
    let messages = 0
    socket.on('message', () => (messages += 1))
    socket.send(p2Frame(p2Spoken('#hang')))
    // A pong proves that the request was read, for it was sent before.
    socket.ping()
    await once(socket, 'pong')
    const aborted = simulator.nextAbort()
    socket.close()
    expect((await aborted).sentMessages).toBe(0)
    expect(messages).toBe(0)
  })
})

describe('queued faults', () => {
  it('strike one session, in order, and need no word in the text', async () => {
    simulator.queueFault('#err3005 #noack')
    simulator.queueFault({ kind: 'status', status: 503, headers: { 'retry-after': '1' }, body: 'busy' })
    expect(kinds(await say(plain.text))).toEqual(['f0'])
    await expect(say(plain.text)).rejects.toMatchObject({ status: 503, headers: { 'retry-after': '1' }, body: 'busy' })
    expect(kinds(await say(plain.text))).toEqual(plain.frames)
  })

  it('with a slip in them are seen', async () => {
    simulator.queueFault('#err3005 #flag3')
    expect((await say(plain.text)).closeCode).toBe(1006)
    expect(simulator.violations).toEqual([expect.stringContaining('queued fault knows no #flag3')])
  })

  it('words that are none of the table are text', async () => {
    expect(kinds(await say('#flag3 #error x#cut'))).not.toContain('f0')
    expect((await say('C#merge 5#cut')).closeCode).toBe(1000)
  })
})

describe('#bytes=N', () => {
  it.each(['pcm', 'mp3'])('gives exactly as many bytes of %s', async (encoding) => {
    const { audio } = await converseP2(simulator.url, p2Spoken('#bytes=100001', { encoding }))
    expect(audio.length).toBe(100_001)
    expect(audio.findIndex((byte, index) => byte !== index % 251)).toBe(-1)
  })

  it('gives real pages of ogg_opus, as many bytes at least', async () => {
    const { audio } = await converseP2(simulator.url, p2Spoken('#bytes=100000', { encoding: 'ogg_opus' }))
    expect(audio.length).toBeGreaterThanOrEqual(100_000)
    expect(audio.length).toBeLessThan(200_000)
    expect(audio.toString('latin1', 0, 4)).toBe('OggS')
  })

  it('waits for a slow reader, and goes on', async () => {
    const total = 64_000_000
    const socket = await openP2(`${simulator.url}${P2_PATH}`)
    let received = 0
    socket.on('message', (data: Buffer) => (received += data.length))
    socket.send(p2Frame(p2Spoken(`#bytes=${total}`)))
    await once(socket, 'message')
    const session = simulator.lastSession
    socket.pause()
    expect(await session?.nextStall()).toBe(true)
    const sentBytes = session?.sentBytes ?? 0
    expect(sentBytes).toBeLessThan(total / 2)
    expect(session?.blocked).toBe(true)
    expect(await session?.nextStall()).toBe(true)
    expect(session?.sentBytes).toBe(sentBytes)
    socket.resume()
    await new Promise<void>((resolve) => {
      socket.on('message', (data: Buffer) => {
        if (data.readUInt8(1) === 0xb3) resolve()
      })
    })
    expect(received).toBeGreaterThan(total)
    socket.close(1000)
    expect((await session?.closed)?.outcome).toBe('finished')
  })
})

async function endOf(): Promise<{ outcome: string; by: string } | undefined> {
  return simulator.lastSession?.closed
}
