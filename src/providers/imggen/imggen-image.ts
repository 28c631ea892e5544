import { Injectable } from '@nestjs/common'
import { keyCredentials, pathPrefix } from '../../config/channel-schema.js'
import { settings } from '../../config/value-types.js'
import { collect } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import { UpstreamClient, type UpstreamTarget } from '../../upstream/upstream-client.js'
import type { AttemptContext, ImageProvider, ProviderManifest, UpstreamImageTask } from '../contract.js'
import {
  imageTaskOf,
  type ImggenResponse,
  imggenFailure,
  readImggenResponse,
  saysUnknownTask,
  seedIn,
  taskIn,
  unreadableResponse,
} from './imggen-wire.js'

/** A task object takes some kilobytes, and its mask some megabytes. */
const MAXIMUM_ANSWER_BYTES = 16 * 1024 * 1024
const DEFAULT_PATH_PREFIX = '/mj'
/** The upstream asks the drawing service for a seed and waits up to 60 s for its answer. */
const SEED_PATIENCE_MS = 75_000

/** `…/task/{id}/fetch` and `/image-seed` of the image proxy family: the task object's text out. */
@Injectable()
export class ImggenImageProvider implements ImageProvider {
  constructor(private readonly client: UpstreamClient) {}

  async fetch(id: string, context: AttemptContext): Promise<UpstreamImageTask | undefined> {
    return taskOf(await this.ask(id, 'fetch', context), id, context)
  }

  async seed(id: string, context: AttemptContext): Promise<UpstreamImageTask | undefined> {
    const answer = await this.ask(id, 'image-seed', { ...context, target: patient(context.target) })
    const seed = seedIn(answer)
    return seed === undefined
      ? taskOf(answer, id, context)
      : taskOf(await this.ask(id, 'fetch', context), id, context, seed)
  }

  private async ask(id: string, question: 'fetch' | 'image-seed', context: AttemptContext): Promise<ImggenResponse> {
    const { credentials, deadlineAtMs, target } = context
    const path = `${prefixOf(context)}/task/${encodeURIComponent(id)}/${question}`
    const headers = ['mj-api-secret', secretOf(credentials), 'accept', 'application/json']
    try {
      const response = await this.client.send({ method: 'GET', path, headers }, target, context, deadlineAtMs)
      const bytes = await collect(response.body, MAXIMUM_ANSWER_BYTES, () =>
        unreadableResponse('the answer is too large'),
      )
      return readImggenResponse(response, bytes)
    } catch (error) {
      throw repeatable(error)
    }
  }
}

function taskOf(
  answer: ImggenResponse,
  id: string,
  { credentials, callersKey }: AttemptContext,
  seed?: string,
): UpstreamImageTask | undefined {
  const task = taskIn(answer)
  if (task !== undefined) return imageTaskOf(task, id, seed)
  if (saysUnknownTask(answer)) return undefined
  throw imggenFailure(answer, { secret: secretOf(credentials), callersKey })
}

const secretOf = (credentials: string): string => credentials.replace(/^Bearer\s+/i, '')

/** The option `pathPrefix` takes the place of `/mj`; it may be empty. */
const prefixOf = ({ options: { pathPrefix } }: AttemptContext): string =>
  typeof pathPrefix === 'string' ? pathPrefix : DEFAULT_PATH_PREFIX

/** Whether the upstream sends its head at once or with the seed: it is waited for. */
function patient(target: UpstreamTarget): UpstreamTarget {
  const { firstByteMs, idleMs } = target.timeouts
  const timeouts = {
    ...target.timeouts,
    firstByteMs: Math.max(firstByteMs, SEED_PATIENCE_MS),
    idleMs: Math.max(idleMs, SEED_PATIENCE_MS),
  }
  return { ...target, timeouts }
}

/** A question changes nothing and costs nothing: however far it went, it may be asked again. */
function repeatable(error: unknown): unknown {
  if (!(error instanceof GatewayError) || error.details.attempt?.phase !== 'sent') return error
  return new GatewayError(error.kind, error.message, { ...error.details, retryable: true })
}

/** Imggen, the image proxy family: image tasks that the upstream keeps. */
export const IMGGEN_MANIFEST: ProviderManifest = {
  name: 'imggen',
  credentialsSchema: keyCredentials,
  optionsSchema: settings({ pathPrefix: pathPrefix.exactOptional() }),
  capabilities: { image: ImggenImageProvider },
  defaultModelClass: 'image',
  models: {},
}
