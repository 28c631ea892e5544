import { expect } from '@jest/globals'
import {
  type ImggenSimulator,
  type ImggenSimulatorOptions,
  startImggenSimulator,
} from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { VirtualClock } from '@multi-model-gateway/sandbox/tasks/task-clock.js'
import {
  startVidgenSimulator,
  type VidgenSimulator,
  type VidgenSimulatorOptions,
} from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'

export const START_MS = 1_750_000_000_000
export const KEY = { 'mj-api-secret': 'secret' }

/** A task as a relay is shown it. */
export interface Shown extends Record<string, unknown> {
  readonly status: string
  readonly progress: string | null
  readonly imageUrl: string | null
  readonly buttons: readonly { readonly customId: string; readonly label: string }[]
}

/** The simulator on a clock that stands, and a plain client that knows its secret. */
export class ImggenSimulatorLab {
  clock = new VirtualClock(START_MS)
  simulator!: ImggenSimulator

  /** A simulator on a clock of its own. */
  async startAnew(): Promise<void> {
    this.clock = new VirtualClock(START_MS)
    await this.#start()
  }

  /** Another simulator in place of the one that runs; the clock goes on from where it stands. */
  readonly restart = async (options: ImggenSimulatorOptions): Promise<void> => {
    await this.simulator.close()
    await this.#start(options)
  }

  close(): Promise<void> {
    return this.simulator.close()
  }

  readonly get = (path: string): Promise<Response> => fetch(this.simulator.url + path, { headers: KEY })
  readonly fetchTask = (id: string): Promise<Response> => this.get(`/mj/task/${id}/fetch`)
  readonly seed = (id: string): Promise<Response> => this.get(`/mj/task/${id}/image-seed`)
  readonly shown = async (id: string): Promise<Shown> => (await (await this.fetchTask(id)).json()) as Shown

  /** The answer to a post, which must be a 200. */
  readonly post = async (
    path: string,
    body: unknown,
  ): Promise<{ code: number; result: string } & Record<string, unknown>> => {
    const headers = { ...KEY, 'content-type': 'application/json' }
    const response = await fetch(this.simulator.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    expect(response.status).toBe(200)
    return (await response.json()) as { code: number; result: string }
  }

  async #start(options: ImggenSimulatorOptions = {}): Promise<void> {
    this.simulator = await startImggenSimulator({ apiKey: 'secret', clock: this.clock, ...options })
  }
}

export const DAY_MS = 24 * 60 * 60 * 1000
export const TEXT = '/v1/videos/text2video'
export const IMAGES = '/v1/videos/multi-image2video'
export const HEADERS = { authorization: 'Bearer key', 'content-type': 'application/json' }

/** The envelope of every answer. */
export interface VidgenAnswer {
  readonly code: number
  readonly message: string
  readonly request_id: string
  readonly data?: unknown
}

/** The simulator on a clock that stands, and a plain client that knows its key. */
export class VidgenSimulatorLab {
  clock = new VirtualClock(1_750_000_000_000)
  simulator!: VidgenSimulator

  /** A new simulator; the clock goes on from where it stands. */
  readonly start = async (options: VidgenSimulatorOptions = {}): Promise<void> => {
    this.simulator = await startVidgenSimulator({ bearer: 'key' }, { clock: this.clock, ...options })
  }

  /** As `start`, from the first second on. */
  startAnew(): Promise<void> {
    this.clock = new VirtualClock(1_750_000_000_000)
    return this.start()
  }

  close(): Promise<void> {
    return this.simulator.close()
  }

  readonly post = (body: object | string, path = TEXT, more: Record<string, string> = {}): Promise<Response> => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return fetch(this.simulator.url + path, { method: 'POST', headers: { ...HEADERS, ...more }, body: text })
  }

  /** Gives the id of the task. */
  readonly create = async (fields: object = {}, path = TEXT): Promise<string> => {
    const response = await this.post({ prompt: 'a red kite', ...fields }, path)
    const { data } = (await response.json()) as { data: { task_id: string } }
    return data.task_id
  }

  readonly get = async (path: string): Promise<VidgenAnswer> =>
    (await (await fetch(this.simulator.url + path, { headers: HEADERS })).json()) as VidgenAnswer

  readonly read = async (id: string, path = TEXT): Promise<Record<string, unknown>> =>
    (await this.get(`${path}/${id}`)).data as Record<string, unknown>
}

/** The status and the code of a refusal. */
export const refused = async (response: Response): Promise<[number, number]> => [
  response.status,
  ((await response.json()) as VidgenAnswer).code,
]
