import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import OpenAI from 'openai'

export const P1_KEY = 'sk-test-key'

/** The P1 simulator and the official SDK with its key. */
export class P1SimulatorLab {
  simulator!: Simulator
  client!: OpenAI

  async start(): Promise<void> {
    this.simulator = await startP1Simulator({ apiKey: P1_KEY })
    this.client = new OpenAI({ apiKey: P1_KEY, baseURL: `${this.simulator.url}/v1`, maxRetries: 0 })
  }

  close(): Promise<void> {
    return this.simulator.close()
  }
}
