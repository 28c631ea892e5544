import type { CallContext } from './call-context.js'

/** Specification: Image task, status values; beyond the two seen there, those of the proxy family. */
export const IMAGE_STATUSES = [
  'NOT_START',
  'SUBMITTED',
  'MODAL',
  'IN_PROGRESS',
  'SUCCESS',
  'FAILURE',
  'CANCEL',
] as const
export type ImageTaskStatus = (typeof IMAGE_STATUSES)[number]

/** An image task as its upstream shows it. */
export interface UpstreamImageTask {
  readonly status: string
  readonly progress: string
  /** Empty until there is a picture; another one with each preview. */
  readonly imageUrl: string
  /** True for SUCCESS, FAILURE and CANCEL. */
  readonly isTerminal: boolean
  /** The whole task object as JSON text: every field of the specification present, unknown ones kept. */
  readonly object: string
}

export interface ImageProvider {
  /** undefined when the upstream knows no such task, in whatever way it says so. */
  fetch(id: string, context: CallContext): Promise<UpstreamImageTask | undefined>
  /** The task object, with the seed in `properties.seed` where the upstream answers with the seed alone. */
  seed(id: string, context: CallContext): Promise<UpstreamImageTask | undefined>
}
