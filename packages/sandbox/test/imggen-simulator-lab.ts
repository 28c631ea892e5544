import { expect } from '@jest/globals'
import {
  type ImggenSimulator,
  type ImggenSimulatorOptions,
  startImggenSimulator,
} from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { VirtualClock } from '@multi-model-gateway/sandbox/tasks/task-clock.js'

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
