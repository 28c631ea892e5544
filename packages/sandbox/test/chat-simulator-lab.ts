import { expect } from '@jest/globals'

import { P1_KEY, P1SimulatorLab } from './p1-simulator-lab.js'

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

/** The P1 simulator, to be asked for chat. */
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
