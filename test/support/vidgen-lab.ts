import type { CallContext } from '../../src/providers/call-context.js'
import type { UpstreamVideoTask, VideoKind } from '../../src/providers/video.contract.js'
import { VidgenTokens } from '../../src/providers/vidgen/vidgen-token.js'
import { VidgenVideoProvider } from '../../src/providers/vidgen/vidgen-video.js'
import { UpstreamClient } from '../../src/upstream/upstream-client.js'
import { type SeenRequest, startVidgenServer, vidgenContext, type VidgenServer } from './provider-labs.js'

export const START_MS = 1_750_000_000_000
export const TASK_ID = '831200000000000001'
export const CREATE_BODY = Buffer.from(
  '{ "model_name":"upstream-v1", "prompt" : "ein Schiff \\u00fc", "cfg_scale":0.50, "x":12345678901234567890 }',
)

/** The provider in front of a server that a test answers for. */
export interface VidgenLab {
  readonly server: VidgenServer
  /** By which tokens are signed. */
  readonly clock: { ms: number }
  create(changes?: Partial<CallContext>, kind?: VideoKind): Promise<UpstreamVideoTask>
  read(id?: string, changes?: Partial<CallContext>): Promise<UpstreamVideoTask | undefined>
  /** The requests that some work makes. */
  requestsOf(work: () => Promise<unknown>): Promise<readonly SeenRequest[]>
  /** Forgets tokens and sets the clock back. */
  reset(): void
  close(): Promise<void>
}

export async function startVidgenLab(): Promise<VidgenLab> {
  const server = await startVidgenServer()
  const client = new UpstreamClient()
  const clock = { ms: START_MS }
  const freshProvider = (): VidgenVideoProvider => new VidgenVideoProvider(client, new VidgenTokens(() => clock.ms))
  let provider = freshProvider()
  return {
    server,
    clock,
    create: (changes, kind = 'text2video') => provider.create(kind, CREATE_BODY, vidgenContext(server.port, changes)),
    read: (id = TASK_ID, changes = {}) => provider.read('text2video', id, vidgenContext(server.port, changes)),
    requestsOf: async (work) => {
      const before = server.requests.length
      await work()
      return server.requests.slice(before)
    },
    reset: () => {
      clock.ms = START_MS
      provider = freshProvider()
    },
    close: async () => {
      await client.onApplicationShutdown()
      await server.close()
    },
  }
}
