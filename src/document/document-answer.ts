import { UpstreamAnswer } from '../core/upstream-answer.js'
import type { ReadDocument } from '../providers/contract.js'
import { PiecewiseBody } from './piecewise-body.js'

/** Smaller answers are written at once; of larger ones nobody gets a copy, or many slow readers would fill the memory. */
const COPIED_BYTES = 65_536

const TAIL = Buffer.from('}}')

/**
 * The specification's document parse result. The content is JSON text already and is put in as it is. Unlike those of
 * tasks, this envelope has no `request_id`: its section lists three members.
 */
export function documentAnswer({ metadata, content }: ReadDocument, isCached: boolean): UpstreamAnswer {
  const { url, title, description, keywords, siteName, favicon, statusCode, contentType } = metadata
  const shown = JSON.stringify({
    ...{ url, title, description, keywords, siteName, favicon, statusCode, contentType },
    cached: isCached ? 1 : 0,
  })
  const pieces = [Buffer.from(`{"code":0,"message":"success","data":{"metadata":${shown},`), content, TAIL]
  const headers = { 'content-type': 'application/json' }
  if (content.length <= COPIED_BYTES) return new UpstreamAnswer(200, headers, Buffer.concat(pieces))
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
  return new UpstreamAnswer(200, { ...headers, 'content-length': String(bytes) }, new PiecewiseBody(pieces))
}
