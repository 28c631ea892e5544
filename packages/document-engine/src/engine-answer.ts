import { contentText, type EngineReplyHead } from './engine-protocol.js'
import { EngineFault, type EngineMetadata, type EngineOutput } from './model/document.js'

/** Without `rssBytes`, which is measured when the answer is sent. */
type Unmeasured<Head> = Head extends unknown ? Omit<Head, 'rssBytes'> : never

export interface EngineAnswer {
  readonly head: Unmeasured<EngineReplyHead>
  readonly payload: Buffer
}

/** Readers shorten by their own rules; this only keeps the head of an answer within what the gateway accepts. */
const LONGEST_TEXT = 4096

const REFUSED_ALLOCATION = /allocation failed|invalid (?:typed )?(?:array|string) (?:buffer )?length|out of memory/i
const TOO_DEEP = /maximum call stack/i

/** The document as it was read; its content as JSON text of two members, at most `contentBytes` long. */
export function readAnswer(output: EngineOutput, contentBytes: number): EngineAnswer {
  const payload = contentText(output)
  if (payload.length > contentBytes)
    return faultAnswer(new EngineFault('too_large', 'The text of the document is too long.'))
  const { kind, metadata, pages } = output
  return { head: { outcome: 'read', kind, metadata: shortened(metadata), pages }, payload }
}

/** What a thrown error says about the document, or about the engine. */
export function faultAnswer(error: unknown): EngineAnswer {
  return { head: faultHead(error), payload: Buffer.alloc(0) }
}

function faultHead(error: unknown): EngineAnswer['head'] {
  if (error instanceof EngineFault) {
    return { outcome: 'fault', fault: error.fault, message: error.message.slice(0, LONGEST_TEXT) }
  }
  if (error instanceof RangeError && TOO_DEEP.test(error.message)) {
    return { outcome: 'fault', fault: 'too_large', message: 'The document is nested too deeply.' }
  }
  if (error instanceof RangeError && REFUSED_ALLOCATION.test(error.message)) return { outcome: 'out_of_memory' }
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { outcome: 'failed', reason: reason.slice(0, LONGEST_TEXT) }
}

function shortened({ title, description, keywords, siteName, favicon }: EngineMetadata): EngineMetadata {
  const cut = (text: string): string => text.slice(0, LONGEST_TEXT)
  return {
    title: cut(title),
    description: cut(description),
    keywords: cut(keywords),
    siteName: cut(siteName),
    favicon: cut(favicon),
  }
}
