import { expect } from '@jest/globals'
import { type P3SimulatorOptions, startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'

export interface P3Answer {
  data: { audio: string; status: number; ced: string; subtitle_file?: string } | null
  extra_info?: Record<string, number | string>
  trace_id: string
  base_resp: { status_code: number; status_msg: string }
}

/** What differs from a plain request of whoever knows the key. */
export interface P3PostOptions {
  readonly key?: string
  readonly query?: string
  readonly type?: string
}

export const KEY = 'p3-test-key'
export const good = {
  model: 'speech-2.5-hd-preview',
  text: 'The kettle is on.',
  voice_setting: { voice_id: 'English_expressive_narrator' },
}

/** The P3 simulator, which each test starts as it needs it, and a plain client that knows its key. */
export class P3SimulatorLab {
  simulator: Simulator | undefined

  readonly start = async (options: P3SimulatorOptions = {}): Promise<Simulator> => {
    this.simulator = await startP3Simulator({ apiKey: KEY, ...options })
    return this.simulator
  }

  async close(): Promise<void> {
    await this.simulator?.close()
    this.simulator = undefined
  }

  readonly post = (body: object | string, options: P3PostOptions = {}): Promise<Response> =>
    fetch(`${this.simulator?.url ?? ''}/v1/t2a_v2${options.query ?? ''}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${options.key ?? KEY}`, 'content-type': options.type ?? 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  /** The answer, which must come with a 200, as every answer to a request of the right form does. */
  readonly ask = async (body: object | string, options: P3PostOptions = {}): Promise<P3Answer> => {
    const response = await this.post(body, options)
    expect(response.status).toBe(200)
    return (await response.json()) as P3Answer
  }

  /** Starts a simulator and has it speak, in hex; it must succeed. */
  readonly speak = async (
    change: object,
    options: P3SimulatorOptions = {},
  ): Promise<{ answer: P3Answer; audio: Buffer }> => {
    await this.start(options)
    const answer = await this.ask({ ...good, ...change })
    expect(answer.base_resp).toEqual({ status_code: 0, status_msg: 'success' })
    return { answer, audio: Buffer.from(answer.data?.audio ?? '', 'hex') }
  }
}
