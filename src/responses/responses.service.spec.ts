import { describe, expect, it } from '@jest/globals'
import { MemoryKeptResponses } from '../../test/support/memory-kept-responses.js'
import { attemptOf, newCall } from '../../test/support/raw-upstream.js'
import type { ModelCapability } from '../config/model-classes.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import type { ResponsesCall } from '../dialects/openai-responses.js'
import { createLogging } from '../observability/logger.js'
import type { AttemptContext, KeptResponsesProvider, RoutedProviderOf } from '../providers/contract.js'
import { type AttemptPolicy, type PinnedRoute, ProviderRouter, type Route } from '../routing/router.js'
import { ResponseKeeper } from './response-keeper.js'
import { type PinnedResponse, ResponsePins } from './response-pins.js'
import { ResponseReferences } from './response-references.js'
import type { ResponsesRequestDto } from './responses.dto.js'
import { ResponsesService } from './responses.service.js'

const MODEL = 'gpt-5-mini'

/** Pins of one owner in memory, and all that was asked of them. */
class MemoryPins extends ResponsePins {
  readonly kept: PinnedResponse[] = []
  readonly asked: (readonly string[])[] = []
  readonly forgotten: string[] = []
  failure: GatewayError | undefined

  constructor(private readonly channels: ReadonlyMap<string, string>) {
    super()
  }

  override keep(response: PinnedResponse): Promise<void> {
    this.kept.push(response)
    return this.failing()
  }

  override channelsOf(_ownerId: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    this.asked.push(ids)
    return Promise.resolve(new Map([...this.channels].filter(([id]) => ids.includes(id))))
  }

  override forget(_ownerId: string, responseId: string): Promise<void> {
    this.forgotten.push(responseId)
    return this.failing()
  }

  prune = absent

  private failing(): Promise<void> {
    return this.failure === undefined ? Promise.resolve() : Promise.reject(this.failure)
  }
}

/** A channel whose upstream answers the same to everything. */
class StandInChannel implements PinnedRoute<KeptResponsesProvider>, KeptResponsesProvider {
  readonly modelClass = 'chat'
  readonly options = {}
  readonly policies: AttemptPolicy[] = []
  readonly asked: string[] = []

  constructor(readonly channelId: string) {}

  attempt<Result>(
    call: RequestContext,
    policy: AttemptPolicy,
    run: (provider: KeptResponsesProvider, context: AttemptContext) => Promise<Result>,
  ): Promise<Result> {
    this.policies.push(policy)
    return run(this, { ...attemptOf(call, this.channelId), channelId: this.channelId } as AttemptContext)
  }

  async create({ keep }: ResponsesCall): Promise<ProviderResponse> {
    await keep?.({ responseId: 'resp_new', itemIds: ['msg_new'] })
    return this.answer('create')
  }

  countInputTokens = (): Promise<ProviderResponse> => Promise.resolve(this.answer('count'))
  read = (): Promise<ProviderResponse> => Promise.resolve(this.answer('read'))
  inputItems = (): Promise<ProviderResponse> => Promise.resolve(this.answer('items'))
  delete = (): Promise<ProviderResponse> => Promise.resolve(this.answer('delete'))

  private answer(what: string): ProviderResponse {
    this.asked.push(what)
    return new ProviderResponse(200, {}, Buffer.from(what))
  }
}

/** Routes to the channel that is named, or to the first. */
class StandInRouter extends ProviderRouter {
  readonly named: (string | undefined)[] = []

  constructor(private readonly channels: readonly [StandInChannel, ...StandInChannel[]]) {
    super()
  }

  /** Its providers are those of responses alone, whatever capability is named. */
  route<C extends ModelCapability>(
    _capability: C,
    _model: string,
    _caller: object,
    channelId?: string,
  ): Route<RoutedProviderOf<C>> {
    this.named.push(channelId)
    const found = this.channels.find((channel) => channel.channelId === channelId) ?? this.channels[0]
    return found as Route<object> as Route<RoutedProviderOf<C>>
  }

  responseChannels(): readonly StandInChannel[] {
    return this.channels
  }

  transcriptionWithoutModel = absent
  transcriptionModel = absent
  videoChannels = absent
  imageChannels = absent
  document = absent
  models = absent
}

function absent(): never {
  throw new Error('not in this test')
}

/** A service with two channels; `resp_1` with its items is on the first, `resp_2` on the second. */
function lab() {
  const pins = new MemoryPins(
    new Map([
      ['resp_1', 'first'],
      ['rs_1', 'first'],
      ['ig_1', 'first'],
      ['resp_2', 'second'],
      ['msg_2', 'second'],
    ]),
  )
  const channels = [new StandInChannel('first'), new StandInChannel('second')] as const
  const router = new StandInRouter(channels)
  const lines: string[] = []
  const { logger } = createLogging('info', { write: (line) => lines.push(line) })
  const kept = new MemoryKeptResponses()
  const references = new ResponseReferences(pins, kept)
  const service = new ResponsesService(router, references, pins, new ResponseKeeper(kept, logger), logger)
  const call = newCall('/v1/responses')
  call.caller = { keyId: 'team-a' }
  const bodyOf = (more: object): JsonBody<ResponsesRequestDto> => {
    const fields = { model: MODEL, input: 'Hello', ...more }
    return JsonBody.parse(Buffer.from(JSON.stringify(fields))).as<ResponsesRequestDto>(fields)
  }
  return {
    pins,
    kept,
    first: channels[0],
    second: channels[1],
    router,
    service,
    call,
    log: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    create: (more: object = {}) => service.create(bodyOf(more), call),
    count: (more: object = {}) => service.countInputTokens(bodyOf(more), call),
  }
}

const STORE_AWAY = new GatewayError('overloaded', 'The database cannot be reached at the moment.')
const pinned = { id: 'resp_1', query: '' }

describe('The ids of a response', () => {
  it('are kept for its caller, with the channel that has it', async () => {
    const { create, pins } = lab()
    await create()
    const ids = { responseId: 'resp_new', itemIds: ['msg_new'] }
    expect(pins.kept).toEqual([{ ownerId: 'team-a', channelId: 'first', ...ids }])
  })

  it.each([
    [{ store: false }, 0],
    [{ store: true }, 1],
    [{ store: null }, 1],
  ])('are kept where its upstream keeps it: %j', async (more, count) => {
    const { create, pins } = lab()
    await create(more)
    expect(pins.kept).toHaveLength(count)
  })

  it('that a store does not take are a line in the log, and the answer passes', async () => {
    const { create, pins, log, call } = lab()
    pins.failure = STORE_AWAY
    expect((await create()).body).toEqual(Buffer.from('create'))
    expect(log()).toMatchObject([{ level: 40, msg: 'a response could not be kept', requestId: call.requestId }])
  })

  it('that a store does not forget are a line in the log: the response is deleted', async () => {
    const { service, pins, log, call } = lab()
    pins.failure = STORE_AWAY
    expect((await service.delete(pinned, call)).body).toEqual(Buffer.from('delete'))
    expect(pins.forgotten).toEqual(['resp_1'])
    expect(log()).toMatchObject([{ msg: 'a deleted response could not be forgotten' }])
  })
})

describe('A request that was sent and not answered', () => {
  it.each([
    ['is not sent again where the response would be kept', {}, false],
    ['is sent again where nothing is kept', { store: false }, true],
  ])('%s', async (_what, more, canRetryAfterSend) => {
    const { create, first } = lab()
    await create(more)
    expect(first.policies).toMatchObject([{ canRetryAfterSend }])
  })

  it('is sent again where it changes nothing, and not where it deletes', async () => {
    const { service, call, count, first } = lab()
    await count()
    await service.find(pinned, call)
    await service.inputItems(pinned, call)
    await service.delete(pinned, call)
    expect(first.policies.map(({ canRetryAfterSend }) => canRetryAfterSend)).toEqual([true, true, true, false])
  })
})

describe('A request that refers to what is kept', () => {
  it.each([
    ['a response', { previous_response_id: 'resp_2' }, 'second'],
    ['an item', { input: [{ type: 'item_reference', id: 'msg_2' }] }, 'second'],
    ['an item without a type', { input: [{ id: 'msg_2' }] }, 'second'],
    ['reasoning that is not sealed', { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }, 'first'],
    ['a picture that is not sent along', { input: [{ type: 'image_generation_call', id: 'ig_1' }] }, 'first'],
    ['a picture without bytes', { input: [{ type: 'image_generation_call', id: 'ig_1', result: null }] }, 'first'],
  ])('goes where that is: %s', async (_what, more, channelId) => {
    const { create, count, router } = lab()
    await create(more)
    await count(more)
    expect(router.named).toEqual([channelId, channelId])
  })

  it.each([
    ['sealed reasoning', { type: 'reasoning', id: 'rs_x', encrypted_content: 'sealed' }],
    ['a picture with its bytes', { type: 'image_generation_call', id: 'ig_x', result: 'AAAA' }],
    ['a message', { type: 'message', id: 'msg_x', role: 'assistant', content: 'Hello' }],
    ['a message without a type', { id: 'msg_x', role: 'user', content: 'Hello' }],
    ['a call', { type: 'function_call', id: 'fc_x', call_id: 'call_1', name: 'f', arguments: '{}' }],
  ])('refers to nothing with %s, and asks no store', async (_what, item) => {
    const { create, router, pins } = lab()
    await create({ input: [item] })
    expect([router.named, pins.asked]).toEqual([[undefined], []])
  })

  it('on two channels is refused: no upstream has both', async () => {
    const { create, count, router } = lab()
    const more = { previous_response_id: 'resp_1', input: [{ type: 'item_reference', id: 'msg_2' }] }
    const refused = { kind: 'invalid_request', details: { param: 'input', code: 'unsupported_value' } }
    await expect(create(more)).rejects.toMatchObject(refused)
    await expect(count(more)).rejects.toMatchObject(refused)
    expect(router.named).toEqual([])
  })

  it.each(['resp_\0', '', 'resp_ü', 'a'.repeat(129), "'; drop table response_pin; --"])(
    'is refused without asking a store for what cannot be an id: %j',
    async (id) => {
      const { create, service, call, pins } = lab()
      await expect(create({ previous_response_id: id })).rejects.toMatchObject({
        details: { code: 'previous_response_not_found' },
      })
      await expect(create({ input: [{ type: 'item_reference', id }] })).rejects.toMatchObject({ kind: 'not_found' })
      await expect(service.find({ id, query: '' }, call)).rejects.toMatchObject({ kind: 'not_found' })
      expect(pins.asked).toEqual([])
    },
  )

  it('asks a store once for an id that stands in it often', async () => {
    const { create, pins } = lab()
    await create({ input: Array.from({ length: 1000 }, () => ({ type: 'item_reference', id: 'msg_2' })) })
    expect(pins.asked).toEqual([['msg_2']])
  })
})
