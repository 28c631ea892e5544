import { NO_METADATA } from '@multi-model-gateway/document-engine/model/document.js'
import { contentText } from '@multi-model-gateway/document-engine/protocol.js'
import { Injectable } from '@nestjs/common'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { type DocumentParse, reuseOfPage } from './document-cache.js'
import { DocumentClient, type FetchedDocument } from './document-fetch.js'
import { type DocumentUpload, KIND_TYPES } from './document.dto.js'
import { DocumentParser, type ParsedDocument, type ParseOptions } from './parser.js'

const UPLOAD_STATUS = 200

const NOTHING: ParsedDocument = {
  kind: 'text',
  metadata: NO_METADATA,
  pages: 1,
  content: contentText({ html: '', markdown: '' }),
}

/** Reads documents by the gateway's own means: its client for the web, its engine for what comes of it. */
@Injectable()
export class LocalParser {
  constructor(
    private readonly client: DocumentClient,
    private readonly parser: DocumentParser,
  ) {}

  /** Whatever status the page's server gives it, it is a document. Rejects as `DocumentClient` and `DocumentParser` do. */
  async readUrl(url: string, call: RequestContext, deadlineAtMs: number): Promise<DocumentParse> {
    const fetched = await this.client.fetch(url, call, deadlineAtMs)
    try {
      const parsed = await this.parseFetched(fetched, { disconnect: call.disconnect, deadlineAtMs })
      const { status: statusCode, file } = fetched
      const contentType = file.contentType === '' && file.spool.size > 0 ? KIND_TYPES[parsed.kind] : file.contentType
      return {
        document: documentOf(parsed, { url: fetched.url, statusCode, contentType }),
        reuse: reuseOfPage(statusCode, fetched.cacheControl),
      }
    } finally {
      await fetched.file.spool.remove()
    }
  }

  /** Rejects as `DocumentParser` does. */
  async readUpload(
    { spool, name, contentType }: DocumentUpload,
    call: RequestContext,
    deadlineAtMs: number,
  ): Promise<DocumentParse> {
    const options = { disconnect: call.disconnect, deadlineAtMs }
    const parsed = await this.parser.parse({ spool, name, contentType, baseUrl: '' }, options)
    const shownType = contentType === '' ? KIND_TYPES[parsed.kind] : contentType
    return {
      document: documentOf(parsed, { url: '', statusCode: UPLOAD_STATUS, contentType: shownType }),
      reuse: 'same caller',
    }
  }

  /** An empty body, and an error response that cannot be read, give an empty document with the status. */
  private async parseFetched({ file, status }: FetchedDocument, options: ParseOptions): Promise<ParsedDocument> {
    if (file.spool.size === 0) return NOTHING
    try {
      return await this.parser.parse(file, options)
    } catch (error) {
      if (status < 400 || !isDocumentError(error)) throw error
      return NOTHING
    }
  }
}

const isDocumentError = (error: unknown): boolean =>
  error instanceof GatewayError && (error.kind === 'unsupported_media_type' || error.kind === 'unprocessable')

const documentOf = (
  { metadata, content, pages }: ParsedDocument,
  facts: { readonly url: string; readonly statusCode: number; readonly contentType: string },
): DocumentParse['document'] => ({ metadata: { ...metadata, ...facts }, content, pages, isCached: false })
