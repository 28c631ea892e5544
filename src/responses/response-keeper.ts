import { Inject, Injectable } from '@nestjs/common'
import { ProviderResponse } from '../core/byte-stream.js'
import { type Caller, ownerOf } from '../core/caller.js'
import { GatewayError, quoted } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import { isId, type MadeResponse } from '../dialects/kept-answers.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { ItemIds, keptItem, listedText } from './kept-items.js'
import { type KeptItem, KeptResponses } from './kept-responses.js'
import type { ResolvedRequest } from './response-references.js'

/** Of a response with its input: rows of a store are written and read as a whole. */
const MAXIMUM_KEPT_BYTES = 8 * 1024 * 1024
const DEFAULT_PAGE = 20
const MAXIMUM_PAGE = 100

/** Keeps responses of translated models, and shows them as upstreams show theirs. */
@Injectable()
export class ResponseKeeper {
  constructor(
    private readonly responses: KeptResponses,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** One that is too large is a line in the log. */
  async keep(
    { responseId: id, response, output: items }: MadeResponse,
    { input, previousId }: ResolvedRequest,
    { caller, requestId }: RequestContext,
  ): Promise<void> {
    const ids = new ItemIds()
    const output = items.map((item) => keptItem(item, true, ids))
    const texts = [...input, ...output].map((item) => item.text)
    const bytes = [response, ...texts].reduce((sum, each) => sum + Buffer.byteLength(each), 0)
    if (bytes > MAXIMUM_KEPT_BYTES) this.logger.warn({ bytes, requestId }, 'a response was too large to be kept')
    else await this.responses.keep({ ownerId: ownerOf(caller), id, previousId, input, output, response })
  }

  /** Throws `not_found`, as the others do. */
  async read(id: string, caller: Caller): Promise<ProviderResponse> {
    const found = isId(id) ? await this.responses.find(ownerOf(caller), id) : undefined
    if (found === undefined) throw unknownResponse(id)
    return jsonAnswer(JsonBody.written(found.response, {}).edited({ output: `[${found.output.join(',')}]` }))
  }

  /** `query` is that of the request. Throws `invalid_request` for a page that cannot be. */
  async inputItems(id: string, query: string, caller: Caller): Promise<ProviderResponse> {
    const items = isId(id) ? await this.responses.inputOf(ownerOf(caller), id) : undefined
    if (items === undefined) throw unknownResponse(id)
    const { page, hasMore } = pageOf(items, new URLSearchParams(query))
    const ends = `"first_id":${idText(page.at(0))},"last_id":${idText(page.at(-1))},"has_more":${hasMore}`
    return jsonAnswer(Buffer.from(`{"object":"list","data":[${page.map(listedText).join(',')}],${ends}}`))
  }

  async delete(id: string, caller: Caller): Promise<ProviderResponse> {
    const isDeleted = isId(id) && (await this.responses.delete(ownerOf(caller), id))
    if (!isDeleted) throw unknownResponse(id)
    return jsonAnswer(Buffer.from(JSON.stringify({ id, object: 'response', deleted: true })))
  }
}

const jsonAnswer = (body: Buffer): ProviderResponse =>
  new ProviderResponse(200, { 'content-type': 'application/json' }, body)

const idText = (item: KeptItem | undefined): string => JSON.stringify(item?.id ?? null)

/** The newest first unless asked for otherwise. */
function pageOf(items: readonly KeptItem[], query: URLSearchParams) {
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalidQuery('order', 'asc or desc')
  const limit = Number(query.get('limit') ?? DEFAULT_PAGE)
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= MAXIMUM_PAGE))
    throw invalidQuery('limit', `an integer from 1 to ${MAXIMUM_PAGE}`)
  const ordered = order === 'asc' ? items : items.toReversed()
  const start = placeOf(ordered, query.get('after'), 'after')
  const end = placeOf(ordered, query.get('before'), 'before')
  const rest = ordered.slice(start === undefined ? 0 : start + 1, end)
  return { page: rest.slice(0, limit), hasMore: rest.length > limit }
}

/** Of the item with this id. */
function placeOf(items: readonly KeptItem[], id: string | null, param: string): number | undefined {
  if (id === null) return undefined
  const place = items.findIndex((item) => item.id === id)
  if (place === -1) throw new GatewayError('not_found', `Item with id ${quoted(id)} not found.`, { param })
  return place
}

const invalidQuery = (param: string, allowed: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid value: '${param}' must be ${allowed}.`, { param, code: 'invalid_value' })

export const unknownResponse = (id: string): GatewayError =>
  new GatewayError('not_found', `Response with id ${quoted(id)} not found.`)
