import type { CallContext } from './call-context.js'

/** The two kinds of video tasks (specification: Video task), named as their paths are. */
export const VIDEO_KINDS = ['multi-image2video', 'text2video'] as const
export type VideoKind = (typeof VIDEO_KINDS)[number]

export type VideoTaskStatus = 'submitted' | 'processing' | 'succeed' | 'failed'

/** A task as its upstream shows it. */
export interface UpstreamVideoTask {
  readonly id: string
  readonly status: VideoTaskStatus
  /** The whole task object as JSON text, exactly as the upstream spelled it: big integers and unknown fields travel on. */
  readonly object: string
  /** Unix milliseconds by the upstream's clock; absent when it says nothing. */
  readonly updatedAtMs?: number
  /** The envelope's own word, e.g. `SUCCEED`. */
  readonly message: string
}

export interface VideoProvider {
  /**
   * Sends the complete JSON body once. Rejects with a `GatewayError`: phase `unsent` or `answered` where no task can have
   * been made, phase `sent` where one may have been (a lost or unreadable answer, 5000, 5002, any 5xx without a code).
   */
  create(kind: VideoKind, body: Buffer, context: CallContext): Promise<UpstreamVideoTask>
  /** By the upstream's id or by the external id that was sent to it; undefined when the upstream knows no such task. */
  read(kind: VideoKind, id: string, context: CallContext): Promise<UpstreamVideoTask | undefined>
}
