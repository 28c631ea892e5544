import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from '@jest/globals'
import { P2SimulatorLab } from '../../test/p2-simulator-lab.js'
import { converseP2, openP2, P2_PATH, p2Frame, p2Json } from '../../test/speech-simulator-labs.js'

const lab = new P2SimulatorLab()
const { start } = lab

afterEach(() => lab.close())

describe('a good request', () => {
  it('gets an ACK, frames numbered from 1, the last one negative, and waits for the close of the client', async () => {
    const { url } = await start()
    const ending = lab.simulator?.nextClose()
    const { frames, audio, closeCode } = await converseP2(url, p2Json())
    expect(frames[0]?.hex).toBe('11b0000000000000')
    const numbers = frames.slice(1).map(({ number }) => number)
    const count = numbers.length
    expect(count).toBeGreaterThan(3)
    expect(numbers).toEqual([...Array.from({ length: count - 1 }, (_, index) => index + 1), -count])
    expect(frames[1]?.hex.slice(0, 24)).toBe(`11b1000000000001${(5760).toString(16).padStart(8, '0')}`)
    expect(frames.at(-1)?.kind).toBe('b3')
    expect(audio.length).toBe(15 * 2880)
    expect(closeCode).toBe(1000)
    const session = await ending
    expect(session?.end).toEqual({ outcome: 'finished', by: 'client', code: 1000, reason: '' })
    expect(session?.sentMessages).toBe(frames.length)
    expect(session?.sentBytes).toBe(frames.reduce((sum, { hex }) => sum + hex.length / 2, 0))
    expect(session?.decoded).toHaveLength(1)
    expect(lab.simulator?.violations).toEqual([])
  })

  it('may be compressed', async () => {
    const { url } = await start()
    const { audio } = await converseP2(url, p2Frame(p2Json(), '11101100', gzipSync))
    expect(audio.length).toBe(43_200)
  })

  it('of the older and the newer demo, with every field there is, is taken', async () => {
    const { url } = await start()
    const extra_param = JSON.stringify({
      disable_markdown_filter: true,
      cache_config: { text_type: 1, use_cache: true },
    })
    const all = p2Json({
      audio: {
        encoding: 'mp3',
        rate: 24_000,
        bitrate: 160,
        speed_ratio: 1,
        loudness_ratio: 2,
        emotion: 'happy',
        enable_emotion: true,
        emotion_scale: 5,
        explicit_language: 'zh',
        context_language: 'es',
      },
      request: {
        model: 'seed-tts-1.1',
        text_type: 'plain',
        silence_duration: 30_000,
        enable_trailing_silence_audio: true,
        with_timestamp: '1',
        extra_param,
      },
    })
    const { frames } = await converseP2(url, all)
    expect(frames.at(-1)?.kind).toBe('b3')
  })

  it('asking for timestamps gets a front-end frame between the audio', async () => {
    const { url } = await start()
    const { frames } = await converseP2(url, p2Json({ request: { text: 'Ni hao', with_timestamp: 1 } }))
    expect(frames.map(({ kind }) => kind)).toEqual(['b0', 'b1', 'c0', 'b1', 'b3'])
    expect(frames[2]?.hex).toMatch(/^11c01000/)
    expect(JSON.parse(frames[2]?.payload.toString('utf8') ?? '')).toMatchObject({
      words: [
        { word: 'Ni', start_time: 0 },
        { word: 'hao', start_time: 0.18 },
      ],
    })
  })

  it('with operation query gets everything in the last frame', async () => {
    const { url } = await start()
    const { frames, audio } = await converseP2(url, p2Json({ request: { operation: 'query' } }))
    expect(frames.map(({ kind, number }) => [kind, number])).toEqual([
      ['b0', undefined],
      ['b3', -1],
    ])
    expect(audio.length).toBe(43_200)
  })

  it('gets no ACK from a simulator without', async () => {
    const { url } = await start({ acknowledge: false })
    expect((await converseP2(url, p2Json())).frames[0]?.kind).toBe('b1')
  })

  it('is closed by the simulator when the client forgets to, which is a violation', async () => {
    const { url } = await start({ closeAfterMs: 20 })
    const socket = await openP2(`${url}${P2_PATH}`)
    socket.send(p2Frame(p2Json()))
    const [code] = (await once(socket, 'close')) as [number]
    expect(code).toBe(1000)
    expect(lab.simulator?.violations).toEqual(['the client did not close after the last frame'])
  })

  it('left by the client in the middle is an abort', async () => {
    const { url } = await start()
    const aborted = lab.simulator?.nextAbort()
    const socket = await openP2(`${url}${P2_PATH}`)
    socket.send(p2Frame(p2Json({ request: { text: '#bytes=800000000' } })))
    await once(socket, 'message')
    socket.terminate()
    expect((await aborted)?.end).toMatchObject({ outcome: 'aborted', by: 'client', code: 1006 })
    expect(lab.simulator?.activeSessions).toBe(0)
  })
})
