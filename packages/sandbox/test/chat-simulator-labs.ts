import Anthropic from '@anthropic-ai/sdk'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import AnthropicOne from 'anthropic-sdk-1'

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
