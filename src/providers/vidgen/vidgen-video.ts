import { Injectable } from '@nestjs/common'
import { pairCredentials, pathPrefix } from '../../config/channel-schema.js'
import { oneOf, settings } from '../../config/value-types.js'
import { collect } from '../../core/byte-stream.js'
import { UpstreamClient, type UpstreamRequest } from '../../upstream/upstream-client.js'
import type { AttemptContext, ProviderManifest, UpstreamVideoTask, VideoKind, VideoProvider } from '../contract.js'
import { type VidgenAuthorization, VidgenTokens } from './vidgen-token.js'
import {
  isSuccess,
  readVidgenResponse,
  saysStaleToken,
  saysUnknownTask,
  taskIn,
  unreadableResponse,
  type VidgenResponse,
  vidgenFailure,
  type VidgenRequest,
} from './vidgen-wire.js'

/** A task object takes some kilobytes. */
const MAXIMUM_ANSWER_BYTES = 4 * 1024 * 1024

const DEFAULT_PATH_PREFIX = '/v1'

/** Paths that name another resource than a task, however an upstream normalises them. */
const NO_ID = /^\.{0,2}$/

type Operation = VidgenRequest['operation']

interface Exchange {
  readonly response: VidgenResponse
  readonly authorization: VidgenAuthorization
}

/** `…/videos/{kind}` at vidgen: bytes in, the task object's text out. */
@Injectable()
export class VidgenVideoProvider implements VideoProvider {
  constructor(
    private readonly client: UpstreamClient,
    private readonly tokens: VidgenTokens,
  ) {}

  async create(kind: VideoKind, body: Buffer, context: AttemptContext): Promise<UpstreamVideoTask> {
    const exchange = await this.ask('create', { method: 'POST', path: pathOf(kind, context), body }, context)
    return taskOf(exchange, 'create', context)
  }

  async read(kind: VideoKind, id: string, context: AttemptContext): Promise<UpstreamVideoTask | undefined> {
    if (NO_ID.test(id)) return undefined
    const path = `${pathOf(kind, context)}/${encodeURIComponent(id)}`
    const exchange = await this.ask('read', { method: 'GET', path }, context)
    return saysUnknownTask(exchange.response) ? undefined : taskOf(exchange, 'read', context, id)
  }

  /** Once more with a new token when the first was refused for its age: such a refusal is definite, nothing was done. */
  private async ask(
    operation: Operation,
    request: Omit<UpstreamRequest, 'headers'>,
    context: AttemptContext,
  ): Promise<Exchange> {
    const first = await this.send(operation, request, context)
    if (!first.authorization.isSigned || !saysStaleToken(first.response)) return first
    this.tokens.forget(context, first.authorization.bearer)
    return await this.send(operation, request, context)
  }

  private async send(
    operation: Operation,
    request: Omit<UpstreamRequest, 'headers'>,
    context: AttemptContext,
  ): Promise<Exchange> {
    const { deadlineAtMs, record, target } = context
    const authorization = this.tokens.authorize(context)
    const headers = ['authorization', `Bearer ${authorization.bearer}`, 'accept', 'application/json']
    if (request.body !== undefined) headers.push('content-type', 'application/json')
    const response = await this.client.send({ ...request, headers }, target, context, deadlineAtMs)
    const bytes = await collect(response.body, MAXIMUM_ANSWER_BYTES, () =>
      unreadableResponse({ operation }, 'the answer is too large'),
    )
    const answer = readVidgenResponse(response, bytes)
    if (answer.requestId !== undefined) record.upstreamRequestId = answer.requestId
    return { response: answer, authorization }
  }
}

/** The option `pathPrefix` takes the place of `/v1`; it may be empty. */
function pathOf(kind: VideoKind, { options }: AttemptContext): string {
  const { pathPrefix: prefix } = options
  return `${typeof prefix === 'string' ? prefix : DEFAULT_PATH_PREFIX}/videos/${kind}`
}

function taskOf(
  { response: answer, authorization }: Exchange,
  operation: Operation,
  { callersKey }: AttemptContext,
  askedId?: string,
): UpstreamVideoTask {
  const request = { operation, callersKey, secrets: authorization.secrets }
  if (!isSuccess(answer)) throw vidgenFailure(answer, request)
  const task = taskIn(answer, askedId)
  if (task === undefined) throw unreadableResponse(request, `status ${answer.httpStatus} without a readable task`)
  return task
}

/** Vidgen, video from text and from images as long-running tasks. */
export const VIDGEN_MANIFEST: ProviderManifest = {
  name: 'vidgen',
  credentialsSchema: pairCredentials('pair or key', 'must be AK|SK with two printable parts, a bearer, or "caller"'),
  optionsSchema: settings({
    unknownTasks: oneOf(['relay', 'refuse'])
      .default('relay')
      .describe('vidgen: a task id the gateway never saw is asked for at the upstream, or answered with 404'),
    pathPrefix: pathPrefix.exactOptional(),
  }),
  capabilities: { video: VidgenVideoProvider },
  injectables: [VidgenTokens],
  defaultModelClass: 'video',
  models: {
    video: [
      'vidgen-v1',
      'vidgen-v1-6',
      'vidgen-v2-master',
      'vidgen-v2-1-master',
      'vidgen-v2-5-turbo',
      'vidgen-v2-6',
      'vidgen-v3',
    ],
  },
}
