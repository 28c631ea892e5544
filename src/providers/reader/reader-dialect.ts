import type { ReadDocument, ReadRequest } from '../contract.js'
import type { ReaderAnswer } from './reader-wire.js'

/** A request in the words of one reader, without what is the same for all. */
export interface ReaderQuestion {
  /** Begins with a slash; the channel's own prefix comes before it. */
  readonly path: string
  /** Names and values in turn; beside the key and the framing. */
  readonly headers: readonly string[]
  /** JSON fields, or the parts of a form beside the file. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** Why a reader has not read: whose fault that is decides what the caller hears, and whether the channel is at fault. */
export type ReaderFault =
  'caller' | 'too_large' | 'unreadable' | 'unreachable' | 'timeout' | 'key' | 'quota' | 'access' | 'busy' | 'failed'

/** What readers have in common, each in its own words. Sources: their public interfaces. */
export interface ReaderDialect {
  ask(request: ReadRequest): ReaderQuestion
  /** The document in a successful answer; undefined when there is none in it. */
  documentIn(answer: ReaderAnswer, request: ReadRequest): ReadDocument | undefined
  /** Of an answer without a document. */
  faultOf(answer: ReaderAnswer): ReaderFault
}
