import { Injectable } from '@nestjs/common'
import { type Caller, ownerOf } from '../core/caller.js'
import { GatewayError, quoted } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import { isRecord } from '../core/validation-rules.js'
import { isId } from '../dialects/kept-answers.js'
import type { ResponsesQuestion, ResumedRequest } from '../dialects/openai-responses.js'
import { memoryFull } from '../server/read-body.js'
import { BackgroundBilling } from './background-billing.js'
import { inputTexts, ItemIds, keptItem, nativeText } from './kept-items.js'
import { type KeptItem, KeptResponses } from './kept-responses.js'
import { ResponsePins } from './response-pins.js'
import type { ResponsesRequestDto } from './responses.dto.js'

/** Of a request with all that it goes on with; as the limit of bodies is by default. */
const MAXIMUM_CONVERSATION_BYTES = 10 * 1024 * 1024

/** What a request goes on with that the gateway keeps itself. */
interface Kept {
  readonly previousId: string | undefined
  /** The conversation before the request. */
  readonly earlier: readonly KeptItem[]
  /** Items that its input refers to, by their ids. */
  readonly referred: ReadonlyMap<string, KeptItem>
}

const NOTHING: Kept = { previousId: undefined, earlier: [], referred: new Map() }

/** A request for a response, and where what it refers to is. */
export class ResolvedRequest implements ResponsesQuestion {
  private nativeBody: JsonBody<ResponsesRequestDto> | undefined
  private resumedRequest: ResumedRequest | undefined
  private ownInput: readonly KeptItem[] | undefined

  constructor(
    private readonly sent: JsonBody<ResponsesRequestDto>,
    /** Of the upstream that keeps what it refers to; undefined = any. */
    readonly channelId: string | undefined,
    private readonly kept: Kept = NOTHING,
  ) {}

  /** Of the response whose conversation goes on, if the gateway keeps that. */
  get previousId(): string | undefined {
    return this.kept.previousId
  }

  /** The items that the request adds to the conversation; references to kept items are replaced by these. */
  get input(): readonly KeptItem[] {
    return (this.ownInput ??= this.readInput())
  }

  /** Of all that is sent, at most. */
  get bytes(): number {
    const texts = this.isResumed ? [...this.kept.earlier, ...this.input] : []
    return texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), this.sent.bytes.length)
  }

  /** What upstreams that speak responses are asked: what a translation has made of another upstream's answer is left out. */
  get body(): JsonBody<ResponsesRequestDto> {
    if (!this.isResumed) return this.sent
    this.nativeBody ??= this.bodyWith((item) => nativeText(item))
    return this.nativeBody
  }

  get resumed(): ResumedRequest | undefined {
    if (!this.isResumed) return undefined
    this.resumedRequest ??= {
      body: this.bodyWith(({ text }) => text),
      previousResponseId: this.previousId,
      pathOf: (index) => this.pathOf(index),
    }
    return this.resumedRequest
  }

  private get isResumed(): boolean {
    return this.kept !== NOTHING
  }

  private readInput(): readonly KeptItem[] {
    const ids = new ItemIds()
    const { input } = this.sent.fields
    return inputTexts(this.sent.textOf('input')).map((text, index) => {
      const item: unknown = Array.isArray(input) ? input[index] : undefined
      return referredBy(item, this.kept.referred) ?? keptItem(text, false, ids)
    })
  }

  private bodyWith(textOf: (item: KeptItem) => string | undefined): JsonBody<ResponsesRequestDto> {
    const texts = [...this.kept.earlier, ...this.input].map(textOf).filter((text) => text !== undefined)
    const bytes = this.sent.edited({ previous_response_id: undefined, input: `[${texts.join(',')}]` })
    const whole = parsed(bytes)
    const { input } = whole.fields
    return whole.as(Object.assign({}, this.sent.fields, { previous_response_id: null, input }))
  }

  private pathOf(index: number): string {
    const { length } = this.kept.earlier
    if (index < length) return 'previous_response_id'
    return typeof this.sent.fields.input === 'string' ? 'input' : `input[${index - length}]`
  }
}

/** Each of its parts was within the limits of a body. */
function parsed(bytes: Buffer): JsonBody {
  try {
    return JsonBody.parse(bytes)
  } catch (error) {
    throw error instanceof GatewayError ? conversationTooLarge() : error
  }
}

function referredBy(item: unknown, referred: ReadonlyMap<string, KeptItem>): KeptItem | undefined {
  const id = isRecord(item) && isReference(item) ? item['id'] : undefined
  return typeof id === 'string' ? referred.get(id) : undefined
}

/** Finds what requests refer to: upstreams keep the responses that they made, the gateway those that were translated. */
@Injectable()
export class ResponseReferences {
  constructor(
    private readonly pins: ResponsePins,
    private readonly kept: KeptResponses,
    private readonly billing: BackgroundBilling,
  ) {}

  /** Throws `invalid_request`, or `not_found`, for what the caller does not have, and what cannot be put together. */
  async resolve(body: JsonBody<ResponsesRequestDto>, { caller, memory }: RequestContext): Promise<ResolvedRequest> {
    const { previous_response_id: previous, input } = body.fields
    const items = referredItems(input)
    const ids = previous == null ? items : [previous, ...items]
    if (ids.length === 0) return new ResolvedRequest(body, undefined)
    const channels = await this.channelsOf(ids, caller)
    const kept = await this.keptOf(
      previous == null || channels.has(previous) ? undefined : previous,
      items.filter((id) => !channels.has(id)),
      ownerOf(caller),
    )
    const [channelId, other] = new Set(channels.values())
    if (other !== undefined || (channelId !== undefined && kept !== undefined)) throw scattered()
    const request = new ResolvedRequest(body, channelId, kept)
    if (kept === undefined) return request
    const { bytes } = request
    if (bytes > MAXIMUM_CONVERSATION_BYTES) throw conversationTooLarge()
    if (memory?.take(bytes) === false) throw memoryFull()
    return request
  }

  /** The channel whose upstream keeps a response. */
  async channelOf(id: string, caller: Caller): Promise<string | undefined> {
    return (await this.channelsOf([id], caller)).get(id)
  }

  /** No store is asked for what cannot be an id. */
  private async channelsOf(ids: readonly string[], caller: Caller): Promise<ReadonlyMap<string, string>> {
    const possible = [...new Set(ids)].filter(isId)
    if (possible.length === 0) return new Map()
    // The row and the pin of a response in the background are written together.
    await this.billing.writeUnwritten()
    return await this.pins.channelsOf(ownerOf(caller), possible)
  }

  /** What no upstream keeps; undefined where nothing is looked for. */
  private async keptOf(
    previous: string | undefined,
    items: readonly string[],
    ownerId: string,
  ): Promise<Kept | undefined> {
    if (previous === undefined && items.length === 0) return undefined
    const earlier = previous === undefined ? [] : await this.conversation(previous, ownerId)
    const possible = [...new Set(items)].filter(isId)
    const referred =
      possible.length === 0 ? new Map() : await this.kept.items(ownerId, possible, MAXIMUM_CONVERSATION_BYTES)
    if (referred === undefined) throw conversationTooLarge()
    const missing = items.find((id) => !referred.has(id))
    if (missing !== undefined) throw unknownItem(missing)
    return { previousId: previous, earlier, referred }
  }

  private async conversation(id: string, ownerId: string): Promise<readonly KeptItem[]> {
    if (!isId(id)) throw unknownPrevious(id)
    const found = await this.kept.conversation(ownerId, id, MAXIMUM_CONVERSATION_BYTES)
    if (found.state === 'too_large') throw conversationTooLarge()
    if (found.state === 'missing') throw unknownPrevious(found.id)
    return found.items
  }
}

/** Items that are read where they are kept: references, and reasoning or pictures that are not sent along. */
function referredItems(input: unknown): readonly string[] {
  if (!Array.isArray(input)) return []
  return input
    .filter((item) => isRecord(item) && isReference(item))
    .map((item: Readonly<Record<string, unknown>>) => item['id'])
    .filter((id) => typeof id === 'string')
}

function isReference(item: Readonly<Record<string, unknown>>): boolean {
  const { type, role, encrypted_content: sealed, content, result } = item
  // Servers of open models show the reasoning itself, and read it where it is sent back.
  if (type === 'reasoning') return typeof sealed !== 'string' && !(Array.isArray(content) && content.length > 0)
  if (type === 'image_generation_call') return typeof result !== 'string'
  return type === 'item_reference' || (type == null && role == null)
}

const unknownPrevious = (id: string): GatewayError =>
  new GatewayError('invalid_request', `Previous response with id ${quoted(id)} not found.`, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  })

const unknownItem = (id: string): GatewayError =>
  new GatewayError('not_found', `Item with id ${quoted(id)} not found. Items are not kept when store is false.`, {
    param: 'input',
  })

const scattered = (): GatewayError =>
  new GatewayError(
    'invalid_request',
    'The request refers to responses that are kept in different places: by the upstreams of different channels, or by the gateway.',
    { param: 'input', code: 'unsupported_value' },
  )

const conversationTooLarge = (): GatewayError =>
  new GatewayError(
    'invalid_request',
    'The request and the conversation that it goes on with are more than 10 MiB, or more than 65,536 values. Begin a new conversation.',
    { param: 'previous_response_id', code: 'conversation_too_large' },
  )
