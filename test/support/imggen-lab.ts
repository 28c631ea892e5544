import type { CallContext } from '../../src/providers/call-context.js'
import { ImggenImageProvider } from '../../src/providers/imggen/imggen-image.js'
import { UpstreamClient } from '../../src/upstream/upstream-client.js'
import { type SeenRequest, startVidgenServer, type VidgenServer } from './provider-labs.js'
import { newCall, targetOf } from './raw-upstream.js'

export const IMAGE_ID = '1750000000000123'
export const SECRET = 'secret-canary'
export const IMAGE_TASK = `{"id":"${IMAGE_ID}","status":"SUCCESS","progress":"100%","properties":{"finalPrompt":"a kite --v 6"},"n":9223372036854775807}`

/** The provider in front of a server that a test answers for. */
export interface ImggenLab {
  readonly server: VidgenServer
  readonly client: UpstreamClient
  readonly provider: ImggenImageProvider
  /** One attempt on a channel of its own, on its way to the server. */
  context(changes?: Partial<CallContext>): CallContext
  /** Since the last time that this was asked. */
  newRequests(): readonly SeenRequest[]
  close(): Promise<void>
}

export async function startImggenLab(): Promise<ImggenLab> {
  const server = await startVidgenServer()
  const client = new UpstreamClient()
  let seen = 0
  return {
    server,
    client,
    provider: new ImggenImageProvider(client),
    context: (changes = {}) => ({
      call: newCall('/imggen/task/1/fetch'),
      channelId: 'first',
      target: targetOf(server.port),
      credentials: SECRET,
      callersKey: false,
      upstreamModel: '',
      options: {},
      deadlineAtMs: performance.now() + 20_000,
      ...changes,
    }),
    newRequests: () => {
      const requests = server.requests.slice(seen)
      seen = server.requests.length
      return requests
    },
    close: async () => {
      await client.onApplicationShutdown()
      await server.close()
    },
  }
}
