import { createHash } from 'node:crypto'
import type { DocumentSource, DocumentUpload } from './document-request.js'

/**
 * The same text for the same document, whoever asks: a URL is one as it stands, a file by its content and by what was
 * claimed about it.
 */
export async function identityOf(source: DocumentSource): Promise<string> {
  return source.kind === 'url' ? `url ${source.url}` : `file ${await digestOf(source.upload)}`
}

async function digestOf({ spool, name, contentType }: DocumentUpload): Promise<string> {
  const digest = createHash('sha256').update(`${JSON.stringify([name, contentType])}\n`)
  for await (const chunk of spool.createReadStream() as AsyncIterable<Buffer>) digest.update(chunk)
  return digest.digest('hex')
}
