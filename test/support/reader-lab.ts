import { startReaderSimulator } from '@multi-model-gateway/sandbox/reader/reader.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { SpooledFile } from '../../src/core/spooled-file.js'
import type { CallContext } from '../../src/providers/call-context.js'
import type { ReadRequest } from '../../src/providers/contract.js'
import { ReaderDocumentProvider } from '../../src/providers/reader/reader-document.js'
import { UpstreamClient } from '../../src/upstream/upstream-client.js'
import { newCall, targetOf } from './raw-upstream.js'

export const READER_KEY = 'reader-key'
export const READER_DIALECTS = ['gateway', 'firecrawl', 'jina'] as const

/** The provider in front of the simulator. */
export interface ReaderLab {
  readonly simulator: Simulator
  readonly provider: ReaderDocumentProvider
  context(dialect: string, changes?: Partial<CallContext>): CallContext
  close(): Promise<void>
}

export async function startReaderLab(): Promise<ReaderLab> {
  const simulator = await startReaderSimulator({ apiKey: READER_KEY })
  const client = new UpstreamClient()
  return {
    simulator,
    provider: new ReaderDocumentProvider(client),
    context: (dialect, changes = {}) => ({
      call: newCall('/v1/document/parse'),
      channelId: 'first',
      target: targetOf(simulator.port),
      credentials: READER_KEY,
      callersKey: false,
      upstreamModel: '',
      options: { dialect },
      deadlineAtMs: performance.now() + 20_000,
      ...changes,
    }),
    close: async () => {
      await client.onApplicationShutdown()
      await simulator.close()
    },
  }
}

export const urlRequest = (url: string, changes: Partial<ReadRequest> = {}): ReadRequest => ({
  source: { kind: 'url', url },
  timeoutMs: 20_000,
  isFresh: false,
  answerBytes: 10_000_000,
  ...changes,
})

/** The spool must be removed by whoever asked for it. */
export async function fileRequest(bytes: Buffer, name = 'report.pdf', contentType = 'application/pdf') {
  const spool = new SpooledFile()
  await spool.append(bytes)
  await spool.finish()
  const request: ReadRequest = {
    source: { kind: 'file', spool, name, contentType },
    timeoutMs: 20_000,
    isFresh: false,
    answerBytes: 10_000_000,
  }
  return { request, spool }
}
