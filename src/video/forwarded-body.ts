import type { JsonBody, JsonEdits } from '../core/json-body.js'
import type { VideoKind } from '../providers/video.contract.js'
import type { TaskIds } from '../tasks/tasks.js'
import type { VideoFields } from './video-fields.js'
import { DEFAULT_MODELS } from './video-models.js'

/** The model as the caller named it; undefined when they left it to the default. */
function namedModel(kind: VideoKind, fields: VideoFields): string | undefined {
  // Elsewhere `model` is an unknown field like any other.
  return fields.model_name ?? (kind === 'text2video' ? fields.model : undefined) ?? undefined
}

/** The model that decides about access and channel. */
export const routedModel = (kind: VideoKind, fields: VideoFields): string =>
  namedModel(kind, fields) ?? DEFAULT_MODELS[kind]

/**
 * The caller's bytes with only what the gateway must change: the model's name at this upstream, the ids under which it
 * knows the task and calls back, and a duration in numbers, which the upstream has in words. Nothing the caller left out
 * is added.
 */
export function forwardedBody(
  kind: VideoKind,
  body: JsonBody<VideoFields>,
  upstreamModel: string,
  ids: TaskIds,
): Buffer {
  const { fields } = body
  return body.edited({
    ...modelEdits(kind, fields, upstreamModel),
    ...(typeof fields.duration === 'number' ? { duration: JSON.stringify(String(fields.duration)) } : {}),
    // The caller's own address never leaves the gateway.
    callback_url: ids.callbackUrl === undefined ? undefined : JSON.stringify(ids.callbackUrl),
    external_task_id: JSON.stringify(ids.externalId),
  })
}

function modelEdits(kind: VideoKind, fields: VideoFields, upstreamModel: string): JsonEdits {
  const name = namedModel(kind, fields)
  if (name === undefined || (name === upstreamModel && fields.model_name === name)) return {}
  const renamed = { model_name: JSON.stringify(upstreamModel) }
  return fields.model_name === name ? renamed : { ...renamed, model: undefined }
}
