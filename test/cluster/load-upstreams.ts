import { type ImggenSimulator, startImggenSimulator } from '@multi-model-gateway/sandbox/imggen/imggen.simulator.js'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { IMGGEN_SECRET } from '../support/imggen-gateway.js'
import { p1Channel, UPSTREAM_KEY } from '../support/p1-gateway.js'
import { type HoldingProxy, startHoldingProxy } from '../support/proxies.js'
import { startParts } from '../support/start-parts.js'
import { VIDGEN_ACCESS, vidgenChannel } from '../support/task-gateways.js'
import type { LoadKind } from './callers.js'
import { chats, documents, images, messages, speeches, transcriptions, videos } from './load-kinds.js'

const CHAT_MODEL = 'gpt-4.1-mini'
const MESSAGES_MODEL = 'claude-haiku-4-5'

/** Upstreams for every kind of request whose answer comes as a whole. Documents need none. */
export interface LoadUpstreams {
  readonly channels: readonly object[]
  readonly kinds: readonly LoadKind[]
  /** The tasks that callers were told of, by the id they gave them. */
  readonly created: ReadonlyMap<string, string>
  readonly videos: VidgenSimulator
  /** Holds the answers of kind `messages` back while it is told to. */
  readonly messagesDoor: HoldingProxy
  readonly violations: () => readonly string[]
  /**
   * Every other request takes so long from now on, until the returned function is called: with the requests that each
   * upstream remembers, their violations are forgotten then.
   */
  slowDown(durationMs: number): () => void
  close(): Promise<void>
}

export function startLoadUpstreams(): Promise<LoadUpstreams> {
  return startParts(async (closedAtLast) => {
    const p1 = closedAtLast(await startP1Simulator({ apiKey: UPSTREAM_KEY }))
    const m1 = closedAtLast(await startM1Simulator({ apiKey: UPSTREAM_KEY }))
    const messagesDoor = closedAtLast(await startHoldingProxy(m1.port))
    const vidgen = closedAtLast(await startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' }))
    const imggen = closedAtLast(await startImggenSimulator({ apiKey: IMGGEN_SECRET, stepMs: 'manual' }))
    const simulators: readonly Simulator[] = [p1, m1, vidgen, imggen]
    const created = new Map<string, string>()
    return {
      channels: [
        p1Channel('load-p1', p1, { models: [CHAT_MODEL, 'whisper-1', 'tts-1'] }),
        {
          id: 'load-m1',
          provider: 'm1',
          baseUrl: messagesDoor.url,
          credentials: UPSTREAM_KEY,
          models: [MESSAGES_MODEL],
        },
        vidgenChannel('load-videos', vidgen),
        { id: 'load-images', provider: 'imggen', baseUrl: imggen.url, credentials: IMGGEN_SECRET },
      ],
      kinds: kindsOf(created, imggen),
      created,
      videos: vidgen,
      messagesDoor,
      violations: () => simulators.flatMap(({ violations }) => violations),
      slowDown: (durationMs) => {
        const stops = simulators.map((simulator) => slowDown(simulator, durationMs))
        return () => {
          for (const stop of stops) stop()
        }
      },
    }
  })
}

const kindsOf = (created: Map<string, string>, imggen: ImggenSimulator): readonly LoadKind[] => [
  chats(CHAT_MODEL),
  transcriptions,
  speeches,
  documents,
  messages(MESSAGES_MODEL),
  videos(created),
  images(imggen),
]

function slowDown(simulator: Simulator, durationMs: number): () => void {
  let count = 0
  const slow = (): void => {
    if (++count % 2 === 0) simulator.queueFault({ kind: 'delay', ms: durationMs })
  }
  simulator.on('request', slow)
  return () => {
    simulator.off('request', slow).reset()
  }
}
