import { describe, expect, it } from '@jest/globals'
import { unused, UnusedRouter } from '../../test/support/unused-router.js'
import { MemoryBackgroundResponses } from '../../test/support/memory-background-responses.js'
import { MemoryKeptResponses } from '../../test/support/memory-kept-responses.js'
import { attemptOf, newCall } from '../../test/support/raw-upstream.js'
import { ManualClock } from '../../test/support/task-lab.js'
import { CollectedUsage } from '../../test/support/task-rows.js'
import type { ModelCapability } from '../config/model-classes.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import type { MemoryLease } from '../core/quota.js'
import type { AnswerToKeep } from '../dialects/kept-answers.js'
import type { ResponsesCall, ResponsesFields, ResponsesQuestion } from '../dialects/openai-responses.js'
import type { EndedResponse, ResponseProgress } from '../dialects/response-state.js'
import { createLogging } from '../observability/logger.js'
import type {
  AttemptContext,
  KeptResponseCall,
  KeptResponseRead,
  KeptResponsesProvider,
  RoutedProviderOf,
} from '../providers/contract.js'
import { type AttemptPolicy, type PinnedRoute, type Route } from '../routing/router.js'
import { BackgroundBilling } from './background-billing.js'
import type { KeptItem } from './kept-responses.js'
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

  constructor(
    private readonly channels: ReadonlyMap<string, string>,
    /** A store writes these together with their pins. */
    private readonly background: MemoryBackgroundResponses,
  ) {
    super()
  }

  override keep(response: PinnedResponse): Promise<void> {
    this.kept.push(response)
    return this.failing()
  }

  override channelsOf(_ownerId: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    this.asked.push(ids)
    const rows = [...this.background.rows.values()].map(({ id, channelId }) => [id, channelId] as const)
    return Promise.resolve(new Map([...this.channels, ...rows].filter(([id]) => ids.includes(id))))
  }

  override forget(_ownerId: string, responseId: string): Promise<void> {
    this.forgotten.push(responseId)
    return this.failing()
  }

  prune = unused

  private failing(): Promise<void> {
    return this.failure === undefined ? Promise.resolve() : Promise.reject(this.failure)
  }
}

/** A channel whose upstream answers the same to everything. */
const NEW_IDS = { responseId: 'resp_new', itemIds: ['msg_new'] }

class StandInChannel implements PinnedRoute<KeptResponsesProvider>, KeptResponsesProvider {
  readonly modelClass = 'chat'
  readonly options = {}
  readonly policies: AttemptPolicy[] = []
  readonly asked: string[] = []
  readonly questions: ResponsesQuestion[] = []
  answerToKeep: AnswerToKeep = NEW_IDS
  callersKey = false
  progressSeen: ResponseProgress | GatewayError = 'running'
  /** What a read or a cancel shows. */
  endSeen: EndedResponse | undefined
  /** Whether a read or a cancel is to look for the end. */
  readonly looksForEnds: boolean[] = []
  /** Called when a create has been sent. */
  whenSent: (context: AttemptContext) => Promise<void> = () => Promise.resolve()

  constructor(readonly channelId: string) {}

  attempt<Result>(
    call: RequestContext,
    policy: AttemptPolicy,
    run: (provider: KeptResponsesProvider, context: AttemptContext) => Promise<Result>,
  ): Promise<Result> {
    this.policies.push(policy)
    const { channelId, callersKey } = this
    return run(this, { ...attemptOf(call, channelId), channelId, callersKey } as AttemptContext)
  }

  async create(call: ResponsesCall, context: AttemptContext): Promise<ProviderResponse> {
    await call.background?.admit()
    this.questions.push({ body: call.body, resumed: call.resumed })
    const answer = this.answer('create')
    await this.whenSent(context)
    if (call.background === undefined) await call.keep?.(this.answerToKeep)
    else await call.background.begun(NEW_IDS)
    return answer
  }

  countInputTokens = (question: ResponsesQuestion): Promise<ProviderResponse> => {
    this.questions.push(question)
    return Promise.resolve(this.answer('count'))
  }
  read = (call: KeptResponseRead): Promise<ProviderResponse> => this.shown(call, 'read')
  events = (call: KeptResponseRead): Promise<ProviderResponse> => this.shown(call, `events${call.query}`)
  cancel = (call: KeptResponseRead): Promise<ProviderResponse> => this.shown(call, 'cancel')
  progress = (): Promise<ResponseProgress> => {
    this.asked.push('progress')
    const { progressSeen } = this
    return progressSeen instanceof GatewayError ? Promise.reject(progressSeen) : Promise.resolve(progressSeen)
  }
  inputItems = (): Promise<ProviderResponse> => Promise.resolve(this.answer('items'))
  delete = (): Promise<ProviderResponse> => Promise.resolve(this.answer('delete'))

  private async shown({ ended }: KeptResponseRead, what: string): Promise<ProviderResponse> {
    if (this.endSeen !== undefined) await ended?.(this.endSeen)
    this.looksForEnds.push(ended !== undefined)
    return this.answer(what)
  }

  private answer(what: string): ProviderResponse {
    this.asked.push(what)
    return new ProviderResponse(200, {}, Buffer.from(what))
  }
}

/** Routes to the channel that is named, or to the first. */
class StandInRouter extends UnusedRouter {
  readonly named: (string | undefined)[] = []

  constructor(private readonly channels: readonly [StandInChannel, ...StandInChannel[]]) {
    super()
  }

  /** Its providers are those of responses alone, whatever capability is named. */
  override route<C extends ModelCapability>(
    _capability: C,
    _model: string,
    _caller: object,
    channelId?: string,
  ): Route<RoutedProviderOf<C>> {
    this.named.push(channelId)
    const found = this.channels.find((channel) => channel.channelId === channelId) ?? this.channels[0]
    return found as Route<object> as Route<RoutedProviderOf<C>>
  }

  override responseChannels(): readonly StandInChannel[] {
    return this.channels
  }
}

/** A service with two channels; `resp_1` with its items is on the first, `resp_2` on the second. */
function lab() {
  const rows = new MemoryBackgroundResponses()
  const pins = new MemoryPins(
    new Map([
      ['resp_1', 'first'],
      ['rs_1', 'first'],
      ['ig_1', 'first'],
      ['resp_2', 'second'],
      ['msg_2', 'second'],
    ]),
    rows,
  )
  const channels = [new StandInChannel('first'), new StandInChannel('second')] as const
  const router = new StandInRouter(channels)
  const lines: string[] = []
  const { logger } = createLogging('info', { write: (line) => lines.push(line) })
  const kept = new MemoryKeptResponses()
  const usage = new CollectedUsage()
  const clock = new ManualClock()
  const billing = new BackgroundBilling(rows, usage, clock, NO_MARK, logger)
  const references = new ResponseReferences(pins, kept, billing)
  const service = new ResponsesService(router, references, pins, new ResponseKeeper(kept, logger), billing, logger)
  const call = newCall('/v1/responses')
  call.caller = { keyId: 'team-a' }
  const bodyOf = (more: object): JsonBody<ResponsesRequestDto> => {
    const fields = { model: MODEL, input: 'Hello', ...more }
    return JsonBody.parse(Buffer.from(JSON.stringify(fields))).as<ResponsesRequestDto>(fields)
  }
  return {
    pins,
    kept,
    rows,
    usage,
    clock,
    billing,
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

/** Beside a store that is opened anyway. */
const NO_MARK = { write: () => Promise.resolve(), remove: () => Promise.resolve() }

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
    await service.find({ ...pinned, isStreamed: false }, call)
    await service.inputItems(pinned, call)
    await service.delete(pinned, call)
    expect(first.policies.map(({ canRetryAfterSend }) => canRetryAfterSend)).toEqual([true, true, true, false])
  })
})

const THOUGHT = { type: 'reasoning_text', text: 'Let me see.' }

describe('A request that refers to what is kept', () => {
  it.each([
    ['a response', { previous_response_id: 'resp_2' }, 'second'],
    ['an item', { input: [{ type: 'item_reference', id: 'msg_2' }] }, 'second'],
    ['an item without a type', { input: [{ id: 'msg_2' }] }, 'second'],
    ['reasoning that is not sealed', { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }, 'first'],
    ['reasoning without a word', { input: [{ type: 'reasoning', id: 'rs_1', summary: [], content: [] }] }, 'first'],
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
    ['reasoning that can be read', { type: 'reasoning', id: 'rs_x', summary: [], content: [THOUGHT] }],
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

  it.each(['resp_\0', '', 'resp_ü', 'a'.repeat(513), "'; drop table response_pin; --"])(
    'is refused without asking a store for what cannot be an id: %j',
    async (id) => {
      const { create, service, call, pins } = lab()
      await expect(create({ previous_response_id: id })).rejects.toMatchObject({
        details: { code: 'previous_response_not_found' },
      })
      await expect(create({ input: [{ type: 'item_reference', id }] })).rejects.toMatchObject({ kind: 'not_found' })
      await expect(service.find({ id, query: '', isStreamed: false }, call)).rejects.toMatchObject({
        kind: 'not_found',
      })
      expect(pins.asked).toEqual([])
    },
  )

  it('asks a store once for an id that stands in it often', async () => {
    const { create, pins } = lab()
    await create({ input: Array.from({ length: 1000 }, () => ({ type: 'item_reference', id: 'msg_2' })) })
    expect(pins.asked).toEqual([['msg_2']])
  })
})

describe('A request that goes on with what the gateway keeps', () => {
  const EARLIER = [
    { id: 'msg_in', type: 'message', role: 'user', content: 'First' },
    { id: 'rs_out', type: 'reasoning', summary: [], encrypted_content: 'sealed' },
    { id: 'msg_out', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Answer' }] },
  ] as const
  const [GIVEN, THOUGHT, SAID] = EARLIER
  const SAID_NATIVELY = { type: SAID.type, role: SAID.role, content: SAID.content }
  const SECOND = { type: 'message', role: 'user', content: 'Second' }

  /** A lab in which the gateway keeps `resp_own`. */
  async function keptLab() {
    const made = lab()
    const kept = (item: { readonly id: string }, isMade: boolean): KeptItem => ({
      id: item.id,
      text: JSON.stringify(item),
      isMade,
    })
    await made.kept.keep({
      ownerId: 'team-a',
      id: 'resp_own',
      previousId: undefined,
      input: [kept(GIVEN, false)],
      output: [kept(THOUGHT, true), kept(SAID, true)],
      response: '{"id":"resp_own","output":[],"n":1.0}',
    })
    const questions = made.first.questions
    return { ...made, question: () => questions.at(-1) as ResponsesQuestion }
  }

  const inputOf = (body: JsonBody<ResponsesFields> | undefined): unknown =>
    (JSON.parse(String(body?.bytes)) as { input: unknown }).input

  it('is the whole conversation, without what an upstream could not read of another', async () => {
    const { create, question, router } = await keptLab()
    await create({ input: 'Second', previous_response_id: 'resp_own', temperature: 1 })
    const { body, resumed } = question()
    expect(inputOf(body)).toEqual([GIVEN, SAID_NATIVELY, SECOND])
    expect(inputOf(resumed?.body)).toEqual([...EARLIER, SECOND])
    expect(resumed?.body.fields).toMatchObject({
      previous_response_id: null,
      input: [...EARLIER, SECOND],
      temperature: 1,
    })
    expect(body.bytes.toString()).not.toContain('previous_response_id')
    expect(resumed?.previousResponseId).toBe('resp_own')
    expect([0, 2, 3].map((index) => resumed?.pathOf(index))).toEqual([
      'previous_response_id',
      'previous_response_id',
      'input',
    ])
    // Any channel may have it.
    expect(router.named).toEqual([undefined])
  })

  it('is counted as a whole', async () => {
    const { count, question } = await keptLab()
    await count({ input: [SECOND], previous_response_id: 'resp_own' })
    expect(inputOf(question().body)).toEqual([GIVEN, SAID_NATIVELY, SECOND])
    expect(question().resumed?.pathOf(3)).toBe('input[0]')
  })

  it.each([
    ['a reference', { type: 'item_reference', id: 'msg_out' }, [SAID_NATIVELY, SECOND], [SAID, SECOND]],
    ['a reference without a type', { id: 'msg_in' }, [GIVEN, SECOND], [GIVEN, SECOND]],
    ['reasoning that is not sealed', { type: 'reasoning', id: 'rs_out', summary: [] }, [SECOND], [THOUGHT, SECOND]],
  ])('has the items that it refers to: %s', async (_what, reference, natively, translated) => {
    const { create, question } = await keptLab()
    await create({ input: [reference, SECOND] })
    expect(inputOf(question().body)).toEqual(natively)
    expect(inputOf(question().resumed?.body)).toEqual(translated)
    expect(question().resumed?.previousResponseId).toBeUndefined()
    expect(question().resumed?.pathOf(1)).toBe('input[1]')
  })

  it.each([
    [
      'with an unknown item',
      { input: [{ id: 'msg_unknown' }], previous_response_id: 'resp_own' },
      'not_found',
      'input',
    ],
    [
      'with an item of an upstream',
      { input: [{ id: 'msg_2' }], previous_response_id: 'resp_own' },
      'invalid_request',
      'input',
    ],
    [
      'an item, behind a response of an upstream',
      { input: [{ id: 'msg_out' }], previous_response_id: 'resp_2' },
      'invalid_request',
      'input',
    ],
    [
      'more than a body may be',
      { input: 'a'.repeat(11 * 1024 * 1024), previous_response_id: 'resp_own' },
      'invalid_request',
      'previous_response_id',
    ],
    [
      'more values than a body may have',
      { input: [{ ...SECOND, x: Array(65_522).fill(1) }], previous_response_id: 'resp_own' },
      'invalid_request',
      'previous_response_id',
    ],
    [
      'one item again and again',
      { input: Array(40).fill({ id: 'msg_large' }) },
      'invalid_request',
      'previous_response_id',
    ],
  ])('is refused: %s', async (_what, more, kind, param) => {
    const { create, kept } = await keptLab()
    const large = { id: 'msg_large', text: JSON.stringify({ ...GIVEN, content: 'a'.repeat(300_000) }), isMade: false }
    await kept.keep({
      ownerId: 'team-a',
      id: 'resp_large',
      previousId: undefined,
      input: [large],
      output: [],
      response: '{}',
    })
    await expect(create(more)).rejects.toMatchObject({ kind, details: { param } })
  })

  it('is refused where there is no room in memory', async () => {
    const { create, call } = await keptLab()
    call.memory = { take: () => false } as unknown as MemoryLease
    await expect(create({ previous_response_id: 'resp_own' })).rejects.toMatchObject({ kind: 'overloaded' })
  })

  it('is kept with what it adds, and with the response before it', async () => {
    const { create, first, kept, pins } = await keptLab()
    first.answerToKeep = {
      responseId: 'resp_next',
      response: '{"id":"resp_next","output":[],"status":"completed"}',
      output: ['{"id":"msg_next","n":1.0}'],
    }
    await create({ input: [{ id: 'msg_out' }, SECOND], previous_response_id: 'resp_own' })
    expect(pins.kept).toEqual([])
    expect(kept.kept.at(-1)).toMatchObject({
      ownerId: 'team-a',
      id: 'resp_next',
      previousId: 'resp_own',
      input: [
        { id: 'msg_out', isMade: true },
        { text: JSON.stringify(SECOND), isMade: false },
      ],
      output: [{ id: 'msg_next', text: '{"id":"msg_next","n":1.0}', isMade: true }],
      response: '{"id":"resp_next","output":[],"status":"completed"}',
    })
  })

  it('is not kept where it is too large, or the store fails: both are lines in the log', async () => {
    const { create, first, kept, log } = await keptLab()
    const small: AnswerToKeep = { responseId: 'resp_next', response: '{"id":"resp_next","output":[]}', output: [] }
    first.answerToKeep = { ...small, output: [JSON.stringify({ id: 'msg_next', text: 'ä'.repeat(4 * 1024 * 1024) })] }
    expect((await create()).body).toEqual(Buffer.from('create'))
    first.answerToKeep = small
    kept.failure = STORE_AWAY
    expect((await create()).body).toEqual(Buffer.from('create'))
    expect(kept.kept).toHaveLength(1)
    expect(log().map(({ msg }) => msg)).toEqual(['a response was too large to be kept', 'a response could not be kept'])
  })

  it('is refused while the store is away', async () => {
    const { create, service, kept, call } = await keptLab()
    kept.failure = STORE_AWAY
    await expect(create({ previous_response_id: 'resp_own' })).rejects.toBe(STORE_AWAY)
    await expect(service.find({ id: 'resp_own', query: '', isStreamed: false }, call)).rejects.toBe(STORE_AWAY)
    await expect(service.delete({ id: 'resp_own', query: '' }, call)).rejects.toBe(STORE_AWAY)
  })
})

describe('A response in the background', () => {
  const IN_BACKGROUND = { background: true }
  const END: EndedResponse = {
    responseId: 'resp_1',
    itemIds: ['msg_end'],
    outcome: 'ok',
    usage: { units: { input_tokens: 7, output_tokens: 5 }, estimated: false },
  }

  /** With `resp_1` of the first channel in the background. */
  async function begunLab() {
    const made = lab()
    const { billing, rows } = made
    const row = { ownerId: 'team-a', id: 'resp_1', channelId: 'first', model: MODEL, route: '/v1/responses' }
    await billing.begin(row)
    return { ...made, rowOf: () => rows.find('team-a', 'resp_1') }
  }

  it('is written down before its caller has the id, and nothing else is kept of it', async () => {
    const { create, rows, pins, clock } = lab()
    await create(IN_BACKGROUND)
    const row = await rows.find('team-a', 'resp_new')
    expect(row).toMatchObject({ channelId: 'first', model: MODEL, route: '/v1/responses', polls: 0 })
    expect([row?.createdAtMs, (row?.nextPollAtMs ?? 0) > clock.nowMs()]).toEqual([clock.nowMs(), true])
    expect(pins.kept).toEqual([])
  })

  it.each([
    ['that is not stored', { store: false }, false, { param: 'background', code: 'invalid_value' }],
    ['with a key of the caller’s own', {}, true, { param: 'background', code: 'unsupported_value' }],
  ])('is refused before anything is sent: one %s', async (_what, more, callersKey, details) => {
    const { create, first } = lab()
    first.callersKey = callersKey
    await expect(create({ ...IN_BACKGROUND, ...more })).rejects.toMatchObject({ kind: 'invalid_request', details })
    expect(first.asked).toEqual([])
  })

  it('is not sent while the store is away: what it uses could not be billed', async () => {
    const { create, first, rows } = lab()
    rows.failure = STORE_AWAY
    await expect(create(IN_BACKGROUND)).rejects.toBe(STORE_AWAY)
    expect(first.asked).toEqual([])
  })

  it('that the store does not take any more is written down when it is back, and the answer passes', async () => {
    const { create, first, rows, billing, log } = lab()
    first.whenSent = () => {
      rows.failure = STORE_AWAY
      return Promise.resolve()
    }
    expect((await create(IN_BACKGROUND)).body).toEqual(Buffer.from('create'))
    expect(log()).toMatchObject([
      { level: 40, msg: 'a background response waits for the store', responseId: 'resp_new' },
    ])
    await expect(billing.writeUnwritten()).rejects.toBe(STORE_AWAY)
    rows.failure = undefined
    await billing.writeUnwritten()
    expect(await rows.find('team-a', 'resp_new')).toMatchObject({ model: MODEL })
  })

  it('that the store did not take can be gone on with as soon as the store is back', async () => {
    const { create, first, rows, router } = lab()
    first.whenSent = () => {
      rows.failure = STORE_AWAY
      return Promise.resolve()
    }
    await create(IN_BACKGROUND)
    first.whenSent = () => Promise.resolve()
    rows.failure = undefined
    await create({ previous_response_id: 'resp_new' })
    expect(router.named).toEqual([undefined, 'first'])
  })

  it('that the store did not take can be read, cancelled and deleted as soon as the store is back', async () => {
    const { create, first, rows, service, call } = lab()
    first.whenSent = () => {
      rows.failure = STORE_AWAY
      return Promise.resolve()
    }
    await create(IN_BACKGROUND)
    const created = { id: 'resp_new', query: '' }
    await expect(service.find({ ...created, isStreamed: false }, call)).rejects.toBe(STORE_AWAY)
    rows.failure = undefined
    const begun = rows.begun
    await Promise.all([service.find({ ...created, isStreamed: false }, call), service.cancel(created, call)])
    expect(rows.begun - begun).toBe(1)
    expect(first.asked.toSorted()).toEqual(['cancel', 'create', 'read'])
  })

  it('that cannot be written down before the process ends is a line in the log', async () => {
    const { create, first, rows, billing, log } = lab()
    first.whenSent = () => {
      rows.failure = STORE_AWAY
      return Promise.resolve()
    }
    await create(IN_BACKGROUND)
    await billing.close()
    const line = {
      level: 50,
      msg: 'a background response could not be recorded: its use is not billed',
      keyId: 'team-a',
    }
    expect(log().at(-1)).toMatchObject(line)
  })

  it('that begins while the process ends, and cannot be written down, is a line in the log', async () => {
    const { create, first, rows, billing, log } = lab()
    first.whenSent = async () => {
      await billing.close()
      rows.failure = STORE_AWAY
    }
    await create(IN_BACKGROUND)
    const msg = 'a background response could not be recorded: its use is not billed'
    expect(log()).toMatchObject([{ level: 50, msg, responseId: 'resp_new' }])
  })

  it('is known although its caller leaves before it is answered', async () => {
    const { create, first, rows, call } = lab()
    let isUpstreamLeft = true
    const released = new Promise<void>((resolve) => {
      first.whenSent = ({ disconnect }) => {
        call.disconnect.abort()
        isUpstreamLeft = disconnect.aborted
        call.disconnect.whenReleased(resolve)
        return Promise.resolve()
      }
    })
    await create(IN_BACKGROUND)
    await released
    expect(isUpstreamLeft).toBe(false)
    expect(await rows.find('team-a', 'resp_new')).toBeDefined()
  })

  it('is not sent where its caller has left before', async () => {
    const { create, first, call } = lab()
    call.disconnect.abort()
    await expect(create(IN_BACKGROUND)).rejects.toMatchObject({ kind: 'caller_left' })
    expect(first.asked).toEqual([])
  })

  it.each([
    ['before it is answered', true],
    ['while its answer is read', false],
  ])('is left at its upstream by a caller who leaves %s, as soon as it is known', async (_when, isEarly) => {
    const { create, first, call } = lab()
    let isUpstreamLeft = (): boolean => false
    first.whenSent = ({ disconnect }) => {
      isUpstreamLeft = () => disconnect.aborted
      if (isEarly) call.disconnect.abort()
      return Promise.resolve()
    }
    await create(IN_BACKGROUND)
    expect(isUpstreamLeft()).toBe(isEarly)
    call.disconnect.abort()
    expect(isUpstreamLeft()).toBe(true)
  })

  it('keeps the place of a caller who has left until what its answer has used is noted', async () => {
    const { create, first, call } = lab()
    const steps: string[] = []
    const released = new Promise<void>((resolve) => {
      first.whenSent = () => {
        call.disconnect.abort()
        call.disconnect.whenReleased(() => {
          steps.push('released')
          resolve()
        })
        return Promise.resolve()
      }
    })
    await create(IN_BACKGROUND)
    steps.push('answered')
    await released
    expect(steps).toEqual(['answered', 'released'])
  })

  it.each(['find', 'cancel'] as const)('is billed once when its end is seen by %s', async (name) => {
    const { service, call, first, usage, rows, rowOf } = await begunLab()
    first.endSeen = END
    const ask = (): Promise<ProviderResponse> =>
      name === 'find' ? service.find({ ...pinned, isStreamed: false }, call) : service.cancel(pinned, call)
    await ask()
    await ask()
    expect(usage.settled).toMatchObject([
      { id: 'response first resp_1', ownerId: 'team-a', model: MODEL, channelId: 'first', usage: END.usage },
    ])
    expect([await rowOf(), rows.pinned.get('resp_1')]).toEqual([undefined, ['msg_end']])
  })

  it('is looked into for its end only while its bill is open', async () => {
    const { service, call, first } = await begunLab()
    await service.find({ ...pinned, isStreamed: false }, call)
    first.endSeen = END
    await service.find({ ...pinned, isStreamed: true }, call)
    await service.find({ ...pinned, isStreamed: false }, call)
    await service.cancel(pinned, call)
    expect(first.looksForEnds).toEqual([true, true, false, false])
  })

  it('passes although its end cannot be recorded now', async () => {
    const { service, call, first, rows, usage, log } = await begunLab()
    first.endSeen = END
    rows.failure = STORE_AWAY
    expect((await service.find({ ...pinned, isStreamed: false }, call)).body).toEqual(Buffer.from('read'))
    expect(usage.tasks).toEqual([])
    expect(log()).toMatchObject([{ msg: 'the end of a background response is recorded later' }])
  })

  it('is asked for at once after a cancel that has not ended it', async () => {
    const { service, call, clock, rowOf } = await begunLab()
    await service.cancel(pinned, call)
    expect((await rowOf())?.nextPollAtMs).toBe(clock.nowMs())
  })

  it('shows its events from where the caller says', async () => {
    const { service, call, first } = await begunLab()
    await service.find({ id: 'resp_1', query: '?stream=true&starting_after=3', isStreamed: true }, call)
    expect(first.asked).toEqual(['events?stream=true&starting_after=3'])
  })

  it.each([
    ['has ended, with its figures', END, { outcome: 'ok', usage: END.usage }],
    ['runs, without figures', 'running' as const, { outcome: 'caller_left', usage: undefined }],
  ])('that is deleted when it %s, is billed once', async (_what, progress, bill) => {
    const { service, call, first, usage, rowOf } = await begunLab()
    first.progressSeen = progress
    await service.delete(pinned, call)
    expect(first.asked).toEqual(['progress', 'delete'])
    expect(usage.settled).toHaveLength(1)
    expect(usage.settled).toMatchObject([bill])
    expect(await rowOf()).toBeUndefined()
  })

  it('is not deleted where its upstream cannot say what it has used: that would not be known any more', async () => {
    const { service, call, first, usage, rowOf } = await begunLab()
    first.progressSeen = new GatewayError('upstream_failed', 'Down.')
    await expect(service.delete(pinned, call)).rejects.toBe(first.progressSeen)
    expect([first.asked, usage.settled]).toEqual([['progress'], []])
    first.progressSeen = END
    await service.delete(pinned, call)
    expect(usage.settled).toMatchObject([{ usage: END.usage }])
    expect(await rowOf()).toBeUndefined()
  })

  it('is not deleted while what it has used cannot be written down', async () => {
    const { service, call, first, usage, rows } = await begunLab()
    first.progressSeen = END
    rows.failureOfEnd = STORE_AWAY
    await expect(service.delete(pinned, call)).rejects.toBe(STORE_AWAY)
    expect(first.asked).toEqual(['progress'])
    rows.failureOfEnd = undefined
    await service.delete(pinned, call)
    expect(usage.settled).toMatchObject([{ usage: END.usage }])
  })

  it.each(['find', 'cancel'] as const)('is none that a translation has made: %s', async (name) => {
    const { service, call, kept } = lab()
    await kept.keep({ ownerId: 'team-a', id: 'resp_own', previousId: undefined, input: [], output: [], response: '{}' })
    const own: KeptResponseCall = { id: 'resp_own', query: '' }
    const ask = (id: KeptResponseCall): Promise<ProviderResponse> =>
      name === 'find' ? service.find({ ...id, isStreamed: true }, call) : service.cancel(id, call)
    await expect(ask(own)).rejects.toMatchObject({ kind: 'invalid_request' })
    await expect(ask({ id: 'resp_unknown', query: '' })).rejects.toMatchObject({ kind: 'not_found' })
  })
})
