import type { VideoKind } from '../providers/video.contract.js'

/** Specification: Video task (multi-image), `model_name`. */
export const MULTI_IMAGE_MODELS = ['vidgen-v1-6'] as const

/**
 * The model a call without a name is routed as. It is not written into the body: these are the defaults of the
 * specification and, where that names none (text to video), of the upstream itself.
 */
export const DEFAULT_MODELS: Readonly<Record<VideoKind, string>> = {
  'multi-image2video': 'vidgen-v1-6',
  text2video: 'vidgen-v1',
}
