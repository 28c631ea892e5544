import { expect } from '@jest/globals'
import { type P2SimulatorOptions, startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import type { SocketSimulator } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { P2_KEY, type P2Conversation } from './speech-simulator-labs.js'

/** The P2 simulator, which each test starts as it needs it. */
export class P2SimulatorLab {
  simulator: SocketSimulator | undefined

  readonly start = async (options: P2SimulatorOptions = {}): Promise<SocketSimulator> => {
    this.simulator = await startP2Simulator({ apiKey: P2_KEY, ...options })
    return this.simulator
  }

  async close(): Promise<void> {
    await this.simulator?.close()
    this.simulator = undefined
  }
}

/** The last frame as an error: its code and its text. */
export function errorOf({ frames }: P2Conversation): [number | undefined, string] {
  const last = frames.at(-1)
  expect(last?.kind).toBe('f0')
  return [last?.number, last?.payload.toString('utf8') ?? '']
}
