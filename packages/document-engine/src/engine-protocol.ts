import type { DocumentKind, EngineFaultName, EngineLimits, EngineMetadata } from './model/document.js'

/** The pipe to the gateway. Standard output is not used: libraries write their warnings there. */
export const ENGINE_PIPE = 3

/** What is read of a document, as the members of its result: they are put into the answer as they are. */
export const contentText = ({ html, markdown }: { readonly html: string; readonly markdown: string }): Buffer =>
  Buffer.from(`"html":${JSON.stringify(html)},"markdown":${JSON.stringify(markdown)}`)

/** Head of a job; the document's bytes are the payload. */
export interface EngineJobHead {
  readonly contentType: string
  readonly name: string
  readonly baseUrl: string
  readonly limits: EngineLimits
  /** Longest content that the gateway takes back. */
  readonly contentBytes: number
}

/** What memory the whole process uses, in bytes, now that it is done. */
interface Usage {
  readonly rssBytes: number
}

/** Head of an answer to a job; the content is the payload. */
export type EngineReplyHead =
  | ({
      readonly outcome: 'read'
      readonly kind: DocumentKind
      readonly metadata: EngineMetadata
      readonly pages: number
    } & Usage)
  | ({ readonly outcome: 'fault'; readonly fault: EngineFaultName; readonly message: string } & Usage)
  /** A memory request was refused, yet the process lives. */
  | ({ readonly outcome: 'out_of_memory' } & Usage)
  /** A fault of ours; `reason` is for the log. */
  | ({ readonly outcome: 'failed'; readonly reason: string } & Usage)

/** Sent before the answer, when all of the document is there: whatever ends the process from now on may be its doing. */
export interface EngineBegunHead {
  readonly outcome: 'begun'
}

/** The first frame of a process: everything is loaded. */
export interface EngineReadyHead {
  readonly outcome: 'ready'
}
