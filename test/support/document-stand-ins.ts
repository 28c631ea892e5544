import { NO_METADATA } from '@multi-model-gateway/document-engine/model/document.js'
import type { Call } from '../../src/core/request-context.js'
import { SpooledFile } from '../../src/core/spooled-file.js'
import { type DocumentFile, DocumentParser, type ParsedDocument, type ParseTerms } from '../../src/document/parser.js'
import type { CallContext } from '../../src/providers/call-context.js'
import type { DocumentProvider, ReadDocument, ReadRequest } from '../../src/providers/contract.js'
import type { AttemptPolicy, DocumentRoute } from '../../src/routing/router.js'

/** A parser whose Markdown is the text of the file, once the gate is open. */
export class StandInParser extends DocumentParser {
  readonly parsed: (Omit<DocumentFile, 'spool'> & ParseTerms)[] = []
  gate: Promise<void> | undefined
  failure: Error | undefined

  async parse({ spool, ...facts }: DocumentFile, terms: ParseTerms): Promise<ParsedDocument> {
    this.parsed.push({ ...facts, ...terms })
    await this.gate
    if (this.failure !== undefined) throw this.failure
    const markdown = (await spool.read(0, spool.size)).toString()
    return { kind: 'text', metadata: { ...NO_METADATA, title: 'Title' }, pages: 3, content: contentOf(markdown) }
  }
}

export const contentOf = (markdown: string): Buffer => Buffer.from(`"html":"","markdown":${JSON.stringify(markdown)}`)

/** A channel with a reader that remembers what it was asked. */
export class StandInReader implements DocumentProvider, DocumentRoute {
  readonly asked: ReadRequest[] = []
  readonly policies: AttemptPolicy[] = []
  /** Laid over what it answers. */
  answer: Partial<ReadDocument> = {}
  /** While it is set, answers wait for it. */
  gate: (() => Promise<void>) | undefined

  attempt<Result>(
    call: Call,
    policy: AttemptPolicy,
    run: (provider: DocumentProvider, context: CallContext) => Promise<Result>,
  ): Promise<Result> {
    this.policies.push(policy)
    call.log.tried.push({ channelId: 'reader-main', startedAtMs: performance.now() })
    call.log.channelId = 'reader-main'
    return run(this, { call, channelId: 'reader-main' } as CallContext)
  }

  async read(request: ReadRequest): Promise<ReadDocument> {
    this.asked.push(request)
    await this.gate?.()
    const texts = { title: 'There', description: '', keywords: '', siteName: '', favicon: '', contentType: 'a/b' }
    const metadata = { ...texts, url: 'http://93.184.216.34/a', statusCode: 200 }
    return { metadata, content: contentOf('read there'), pages: 1, isCached: false, ...this.answer }
  }
}

/** A finished file with this text. */
export async function spooled(text: string): Promise<SpooledFile> {
  const spool = new SpooledFile()
  await spool.append(Buffer.from(text))
  await spool.finish()
  return spool
}
