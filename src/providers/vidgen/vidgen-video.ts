import { createHmac } from 'node:crypto'
import { Injectable, Optional } from '@nestjs/common'
import { pairCredentials, pathPrefix } from '../../config/channel-schema.js'
import { oneOf, settings } from '../../config/value-types.js'
import { collect } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import { UpstreamClient, type UpstreamRequest } from '../../upstream/upstream-client.js'
import type { AttemptContext, ProviderManifest, UpstreamVideoTask, VideoKind, VideoProvider } from '../contract.js'
import {
  isSuccess,
  readVidgenResponse,
  saysStaleToken,
  saysUnknownTask,
  taskIn,
  unreadableResponse,
  vidgenFailure,
  type VidgenRequest,
  type VidgenResponse,
} from './vidgen-wire.js'

const LIFETIME_S = 1800
/** The upstream's clock may be that far behind ours. */
const BACKDATED_S = 5
/** At four fifths of its life a token is replaced, so that none expires on its way. */
const RENEWAL_MS = LIFETIME_S * 1000 * 0.8
/** Callers with keys of their own may come in any number. */
const MAXIMUM_TOKENS = 1000

const PAIR = /^([\x21-\x7b\x7d\x7e]+)\|([\x21-\x7b\x7d\x7e]+)$/

/** With what a request is sent. */
interface VidgenAuthorization {
  readonly bearer: string
  /** Made here, so that another can be made. */
  readonly isSigned: boolean
  /** Everything the upstream could quote back that must not be seen. */
  readonly secrets: readonly string[]
}

interface SignedToken {
  readonly text: string
  readonly signedAtMs: number
}

type Credentials = Pick<AttemptContext, 'channelId' | 'credentials'>

/** HS256 over `iss`, `exp`, `nbf` in this order, as the upstream's own examples have them. */
export function signedToken(accessKey: string, secretKey: string, nowMs: number): string {
  const nowS = Math.floor(nowMs / 1000)
  const claims = { iss: accessKey, exp: nowS + LIFETIME_S, nbf: nowS - BACKDATED_S }
  const unsigned = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(claims)}`
  return `${unsigned}.${createHmac('sha256', secretKey).update(unsigned).digest('base64url')}`
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The tokens in use, one per credential and channel. */
@Injectable()
export class VidgenTokens {
  /** Oldest first. */
  private readonly tokens = new Map<string, SignedToken>()

  /** The clock, in Unix milliseconds, is set by tests only. */
  constructor(@Optional() private readonly nowMs: () => number = Date.now) {}

  /** `AK|SK` is signed with, anything without a bar is a bearer. Throws `key_malformed` for a bar in the wrong place. */
  authorize(context: Credentials): VidgenAuthorization {
    const { credentials } = context
    if (!credentials.includes('|')) return { bearer: credentials, isSigned: false, secrets: [credentials] }
    const [, accessKey, secretKey] = PAIR.exec(credentials) ?? []
    if (accessKey === undefined || secretKey === undefined) throw malformedPair()
    const bearer = this.tokenFor(context, accessKey, secretKey)
    return { bearer, isSigned: true, secrets: [bearer, credentials, secretKey, accessKey] }
  }

  /** Drops a token the upstream has refused, unless it has been replaced in the meantime. */
  forget(context: Credentials, bearer: string): void {
    const slot = slotOf(context)
    if (this.tokens.get(slot)?.text === bearer) this.tokens.delete(slot)
  }

  private tokenFor(context: Credentials, accessKey: string, secretKey: string): string {
    const slot = slotOf(context)
    const known = this.tokens.get(slot)
    const signedAtMs = this.nowMs()
    const ageMs = known === undefined ? Infinity : signedAtMs - known.signedAtMs
    // A clock that was set back makes a token of the future, which is refused.
    if (known !== undefined && ageMs >= 0 && ageMs < RENEWAL_MS) return known.text
    const text = signedToken(accessKey, secretKey, signedAtMs)
    this.tokens.delete(slot)
    this.tokens.set(slot, { text, signedAtMs })
    const [oldest] = this.tokens.keys()
    if (this.tokens.size > MAXIMUM_TOKENS && oldest !== undefined) this.tokens.delete(oldest)
    return text
  }
}

const slotOf = ({ channelId, credentials }: Credentials): string => `${channelId} ${credentials}`

const malformedPair = (): GatewayError =>
  new GatewayError('key_malformed', 'The API key for this model must have the form <ACCESS_KEY>|<SECRET_KEY>.', {
    attempt: { phase: 'unsent' },
  })

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

  async create(kind: VideoKind, body: readonly Buffer[], context: AttemptContext): Promise<UpstreamVideoTask> {
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
