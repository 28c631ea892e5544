import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { parseBuffer } from 'music-metadata'
import { converseP2, P2_KEY, p2Json, p2Spoken } from '../../test/speech-simulator-labs.js'
import type { SocketSimulator } from '../server/websocket-protocol.js'
import { startP2Simulator } from './p2.simulator.js'

const TEXT = 'The gateway speaks with one voice.'
const SECONDS = TEXT.length * 0.06
let simulator: SocketSimulator

beforeEach(async () => {
  simulator = await startP2Simulator({ apiKey: P2_KEY, wavAccepted: true })
})
afterEach(async () => {
  await simulator.close()
})

const speak = async (audio: object): Promise<Buffer> => (await converseP2(simulator.url, p2Spoken(TEXT, audio))).audio

describe('the audio', () => {
  it.each([
    { encoding: 'mp3', mimeType: 'audio/mpeg', codec: 'MPEG 2 Layer 3' },
    { encoding: 'ogg_opus', mimeType: 'audio/ogg', codec: 'Opus' },
    { encoding: 'wav', mimeType: 'audio/wav', codec: 'PCM' },
  ])('is valid $encoding at 24 kHz as long as the text', async ({ encoding, mimeType, codec }) => {
    const { format } = await parseBuffer(await speak({ encoding }), { mimeType }, { duration: true })
    expect(format).toMatchObject({ codec, sampleRate: 24_000, numberOfChannels: 1 })
    expect(Math.abs((format.duration ?? 0) - SECONDS)).toBeLessThan(0.1)
  })

  it.each([8000, 16_000, 24_000])('is audible pcm at %i Hz', async (rate) => {
    const pcm = await speak({ encoding: 'pcm', rate })
    expect(Math.abs(pcm.length / 2 / rate - SECONDS)).toBeLessThan(0.02)
    const samples = Array.from({ length: pcm.length / 2 }, (_, index) => Math.abs(pcm.readInt16LE(index * 2)))
    expect(Math.max(...samples)).toBeGreaterThan(10_000)
  })

  it('is shorter when spoken faster', async () => {
    const slow = await speak({ speed_ratio: 0.8 })
    const fast = await speak({ speed_ratio: 2 })
    expect(slow.length / fast.length).toBeCloseTo(2.5, 1)
  })

  it('is pcm when nothing else was asked for', async () => {
    expect((await speak({ encoding: undefined })).equals(await speak({ encoding: 'pcm' }))).toBe(true)
  })

  it('of other rates than 24 kHz is a violation where the simulator has none', async () => {
    const { frames } = await converseP2(simulator.url, p2Spoken(TEXT, { encoding: 'mp3', rate: 8000 }))
    expect(frames.at(-1)?.number).toBe(3001)
    expect(simulator.violations).toEqual(['the simulator speaks mp3 at 24000 Hz only'])
  })
})

describe('POST /api/v1/tts', () => {
  async function post(json: object, authorization = 'Bearer;token-1'): Promise<Response> {
    const headers = { authorization, 'content-type': 'application/json' }
    return fetch(`${simulator.httpUrl}/api/v1/tts`, { method: 'POST', headers, body: JSON.stringify(json) })
  }

  it('answers the same audio in one JSON text', async () => {
    const response = await post(p2Json({ request: { reqid: 'r1', text: TEXT, operation: 'query' } }))
    expect(response.headers.get('x-tt-logid')).toMatch(/^\d{14}/)
    const { data, ...rest } = (await response.json()) as { data: string }
    expect(rest).toEqual({
      reqid: 'r1',
      code: 3000,
      operation: 'query',
      message: 'Success',
      sequence: -1,
      addition: { duration: '2040' },
    })
    expect(Buffer.from(data, 'base64').equals(await speak({}))).toBe(true)
  })

  it('refuses what it cannot take', async () => {
    const query = { operation: 'query' }
    expect((await post(p2Json({ request: query }), 'Bearer token-1')).status).toBe(401)
    expect((await post(p2Json({ request: query }), 'Bearer;other')).status).toBe(401)
    expect(await (await post(p2Json())).json()).toMatchObject({ code: 3001 })
    expect(await (await post(p2Json({ request: { ...query, text: '' } }))).json()).toMatchObject({ code: 3011 })
    expect(await (await post(p2Json({ request: { ...query, text: '#err3031' } }))).json()).toMatchObject({ code: 3031 })
    expect((await fetch(`${simulator.httpUrl}/api/v1/tts`)).status).toBe(405)
    expect((await fetch(`${simulator.httpUrl}/other`)).status).toBe(404)
  })
})
