import { createHash } from 'node:crypto'
import Anthropic from '@anthropic-ai/sdk'
import { expect } from '@jest/globals'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { type P1SimulatorOptions, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import AnthropicOne from 'anthropic-sdk-1'
import OpenAI, { toFile } from 'openai'

const P1_KEY = 'sk-test-key'

/** The P1 simulator and the official SDK with its key. */
class P1SimulatorLab {
  simulator!: Simulator
  client!: OpenAI

  constructor(private readonly options: P1SimulatorOptions = {}) {}

  async start(): Promise<void> {
    this.simulator = await startP1Simulator({ ...this.options, apiKey: P1_KEY })
    this.client = new OpenAI({ apiKey: P1_KEY, baseURL: `${this.simulator.url}/v1`, maxRetries: 0 })
  }

  close(): Promise<void> {
    return this.simulator.close()
  }
}

export const weather = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object' as const,
      properties: { city: { type: 'string' as const, examples: ['Paris'] } },
      required: ['city'],
    },
  },
}
export const hello = [{ role: 'user' as const, content: 'hello there' }]

/** The P1 simulator for chat. */
export class ChatSimulatorLab extends P1SimulatorLab {
  readonly post = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${this.simulator.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${P1_KEY}`, 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  /** The frames of a streamed answer, which must end with `[DONE]`, without that end. */
  readonly framesOf = async (body: object): Promise<Record<string, unknown>[]> => {
    const text = await (await this.post({ ...body, stream: true })).text()
    const frames = text.split('\n\n')
    expect(frames.slice(-2)).toEqual(['data: [DONE]', ''])
    return frames.slice(0, -2).map((frame) => JSON.parse(frame.slice('data: '.length)) as Record<string, unknown>)
  }
}

/** An event of a streamed response. */
export interface WireEvent {
  readonly type: string
  readonly sequence_number: number
  readonly [name: string]: unknown
}

/** The P1 simulator for responses. */
export class ResponsesSimulatorLab extends P1SimulatorLab {
  readonly send = (path: string, body?: object, method = body === undefined ? 'GET' : 'POST'): Promise<Response> =>
    fetch(`${this.simulator.url}/v1/responses${path}`, {
      method,
      headers: { authorization: `Bearer ${P1_KEY}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })

  /** The events of a stream, which must be numbered without gaps and be named as their data say. */
  readonly eventsOf = async (response: Response): Promise<WireEvent[]> => {
    const frames = (await response.text()).split('\n\n')
    expect(frames.pop()).toBe('')
    return frames.map((frame) => {
      const [, name, data] = /^event: (.+)\ndata: (.+)$/.exec(frame) ?? []
      const event = JSON.parse(data ?? '') as WireEvent
      expect(event.type).toBe(name)
      return event
    })
  }
}

/** 24 kHz mono 16-bit, sizes as in a streamed file. */
export function wav(seconds: number): Buffer {
  const header = Buffer.from('RIFF....WAVEfmt ....................data....', 'latin1')
  header.writeUInt32LE(0xffffffff, 4)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(24_000, 24)
  header.writeUInt32LE(48_000, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.writeUInt32LE(0xffffffff, 40)
  return Buffer.concat([header, Buffer.alloc(Math.round(seconds * 48_000), 7)])
}

export const clip = wav(1.7)
export const checksum = createHash('sha1').update(clip).digest('hex').slice(0, 12)
/** What is heard in the clip. */
export const text = `The audio has checksum ${checksum}. It lasts 1.70 seconds.`
export const file = (bytes = clip): Promise<File> => toFile(bytes, 'a.wav')

/** The P1 simulator for transcriptions. */
export class TranscriptionSimulatorLab extends P1SimulatorLab {
  readonly post = (parts: Record<string, string | Blob>, path = 'transcriptions'): Promise<Response> => {
    const form = new FormData()
    for (const [name, value] of Object.entries(parts)) form.append(name, value)
    return fetch(`${this.simulator.url}/v1/audio/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${P1_KEY}` },
      body: form,
    })
  }
}

const KEY = 'sk-ant-test'

export const helloMessage = {
  model: 'claude-sonnet-4-6',
  max_tokens: 1024,
  messages: [{ role: 'user' as const, content: 'hello there' }],
}
export const tool = {
  name: 'get_weather',
  input_schema: {
    type: 'object' as const,
    properties: { city: { type: 'string', enum: ['Paris'] } },
    required: ['city'],
  },
}

/** The M1 simulator and the official SDKs, old and new, with its key. */
export class M1SimulatorLab {
  simulator!: Simulator
  client!: Anthropic
  newClient!: AnthropicOne

  async start(): Promise<void> {
    this.simulator = await startM1Simulator({ apiKey: KEY })
    this.client = new Anthropic({ apiKey: KEY, baseURL: this.simulator.url, maxRetries: 0 })
    this.newClient = new AnthropicOne({ apiKey: KEY, baseURL: this.simulator.url, maxRetries: 0 })
  }

  close(): Promise<void> {
    return this.simulator.close()
  }

  readonly post = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${this.simulator.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'x-api-key': KEY,
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
}
