import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { type WebSocket, WebSocketServer } from 'ws'
import { TEST_KEY } from '../support/gateway.js'
import { type P1Gateway, startP1Gateway } from '../support/p1-gateway.js'

const EXAMPLE = fileURLToPath(new URL('../../examples/realtime.mjs', import.meta.url))
const HEADER_BYTES = 44

let lab: P1Gateway
let folder: string

beforeAll(async () => {
  lab = await startP1Gateway()
  folder = mkdtempSync(join(tmpdir(), 'realtime-example-'))
})
afterAll(async () => {
  await lab.close()
  rmSync(folder, { recursive: true })
})

interface Outcome {
  readonly code: number
  readonly output: string
  readonly complaint: string
}

/** Runs the example to its end. */
const run = (...parameters: string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile(process.execPath, [EXAMPLE, ...parameters], { cwd: folder }, (error, output, complaint) => {
      resolve({ code: error === null ? 0 : Number(error.code), output, complaint })
    })
  })

const address = (model = 'gpt-realtime'): string =>
  `${lab.gateway.url.replace('http', 'ws')}/v1/realtime?model=${model}`

/** A WAV file of these samples, with a chunk between format and data as recorders write it. */
function wavFile(name: string, { rate = 24_000, audio = Buffer.alloc(9_600, 7) } = {}): string {
  const head = Buffer.from('RIFF....WAVEfmt ....................LIST....abcddata....', 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt16LE(16, 34)
  head.writeUInt32LE(4, 40)
  head.writeUInt32LE(audio.length, 52)
  const file = join(folder, name)
  writeFileSync(file, Buffer.concat([head, audio]))
  return file
}

describe('The example of realtime voice', () => {
  it('sends a file, shows the transcript and the usage, and saves what was answered', async () => {
    const audio = Buffer.from(Array.from({ length: 24_000 }, (_, at) => (at * 31) % 251))
    const answer = join(folder, 'answer.wav')
    const outcome = await run(wavFile('question.wav', { audio }), answer, address(), TEST_KEY)
    const checksum = createHash('sha1').update(audio).digest('hex').slice(0, 12)
    expect(outcome).toMatchObject({ code: 0, complaint: '' })
    expect(outcome.output).toContain(`I heard 500 ms of pcm16 audio with checksum ${checksum}.`)
    expect(outcome.output).toMatch(/\nUsage: \{"total_tokens":\d+,/)
    const saved = readFileSync(answer)
    expect(saved.length).toBeGreaterThan(HEADER_BYTES + 4_800)
    expect(saved.toString('latin1', 0, 4)).toBe('RIFF')
    expect([saved.readUInt32LE(4), saved.readUInt32LE(24)]).toEqual([saved.length - 8, 24_000])
    expect(saved.readUInt32LE(40)).toBe(saved.length - HEADER_BYTES)
  })

  it('needs no file: it asks with a tone', async () => {
    const outcome = await run('-', 'tone.wav', address(), TEST_KEY)
    expect(outcome).toMatchObject({ code: 0, complaint: '' })
    expect(outcome.output).toMatch(/^Sent 1\.0 s of a test tone\./)
  })

  it.each<[string, () => Promise<Outcome>, RegExp]>([
    ['a wrong key', () => run('-', 'x.wav', address(), 'wrong'), /refused with HTTP 401: .*invalid_api_key/],
    [
      'an unknown model',
      () => run('-', 'x.wav', address('nope'), TEST_KEY),
      /refused with HTTP 404: .*model_not_found/,
    ],
    ['a file of another rate', () => run(wavFile('slow.wav', { rate: 16_000 })), /has 16000 Hz.*needed are 24000 Hz/],
    ['a file that is no WAV', () => run(EXAMPLE), /is not a WAV file/],
    ['a file that is not there', () => run('nothing.wav'), /There is no file nothing\.wav/],
    [
      'too little audio',
      () => run(wavFile('short.wav', { audio: Buffer.alloc(480) }), 'x.wav', address(), TEST_KEY),
      /Error input_audio_buffer_commit_empty: /,
    ],
  ])('says what is wrong with %s and fails', async (_name, attempt, complaint) => {
    const outcome = await attempt()
    expect(outcome.complaint).toMatch(complaint)
    expect(outcome.code).toBe(1)
  })

  it('says why a session ended too early and fails', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    server.on('connection', (socket: WebSocket) => {
      socket.close(1001, 'the gateway is restarting')
    })
    await once(server, 'listening')
    const outcome = await run('-', 'x.wav', `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    server.close()
    expect(outcome).toMatchObject({
      code: 1,
      complaint: '\nThe session ended too early: 1001 the gateway is restarting\n',
    })
  })
})
