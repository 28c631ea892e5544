import { ProviderResponse } from '../core/byte-stream.js'
import { JsonBody } from '../core/json-body.js'
import { jsonTextOf } from '../core/json-text.js'
import { estimateInputTokens, type MessagesFields } from '../dialects/anthropic-messages.js'
import { keepingTranslated } from '../dialects/kept-answers.js'
import {
  estimateResponseInput,
  type ResponsesCall,
  type ResponsesFields,
  type ResponsesQuestion,
} from '../dialects/openai-responses.js'
import type { ChatFields } from '../dialects/openai-wire.js'
import { chatOverMessages } from '../dialects/translations/chat-over-messages/chat-over-messages.js'
import { countedByResponses } from '../dialects/translations/messages-over-chat/counted-request.js'
import { messagesOverChat } from '../dialects/translations/messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from '../dialects/translations/responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from '../dialects/translations/responses-over-messages/responses-over-messages.js'
import {
  type KeptTurn,
  type QuestionTranslation,
  sendTranslated,
  type Translation,
  type TranslationTarget,
  type Translator,
} from '../dialects/translator.js'
import { type DialectPair, Verdicts } from '../dialects/verdicts.js'
import type {
  AttemptContext,
  ChatProvider,
  MessagesCall,
  MessagesProvider,
  ResponsesProvider,
} from '../providers/contract.js'

/** What translations for a model and a caller depend on. */
export interface TranslationSetting extends Pick<TranslationTarget, 'facts' | 'seals' | 'thoughts' | 'unknownWords'> {
  /** Whether the gateway keeps responses, as their upstream keeps none. */
  readonly keepsResponses: boolean
}

const targetOf = (setting: TranslationSetting, context: AttemptContext, kept?: KeptTurn): TranslationTarget => ({
  ...setting,
  kept,
  upstreamModel: context.upstreamModel,
  requestId: context.requestId,
  memory: context.memory,
})

/** Verdicts of an attempt, which its record shows. */
function verdictsOf(pair: DialectPair, context: AttemptContext): Verdicts {
  const verdicts = new Verdicts(pair, context.isStrict)
  context.record.translation = verdicts
  return verdicts
}

/** What a request for a response says of what is kept. */
const keptTurnOf = ({ body, resumed }: ResponsesQuestion, { keepsResponses }: TranslationSetting): KeptTurn => ({
  isStored: keepsResponses && body.fields.store !== false,
  previousResponseId: resumed?.previousResponseId,
  pathOf: resumed?.pathOf,
})

/** Translates a call to an upstream, whose answer has used what it says whether or not it can be translated. */
const answered = <Fields extends object>(
  translation: QuestionTranslation<Fields> | Translation<Fields>,
  { memory, record }: AttemptContext,
  send: (request: JsonBody<Fields>) => Promise<ProviderResponse>,
): Promise<ProviderResponse> =>
  sendTranslated(translation, memory, async (request) => {
    const answer = await send(request)
    record.answerUsage = answer.usage
    return answer
  })

/** Says which tokens are the gateway's own estimate. */
const ESTIMATED = 'x-gateway-estimated'

/** The answer to a question about tokens, counted by the gateway itself where `isEstimated`. */
function counted(answer: object, isEstimated: boolean): ProviderResponse {
  const headers = { 'content-type': 'application/json', ...(isEstimated ? { [ESTIMATED]: 'true' } : {}) }
  return new ProviderResponse(200, headers, Buffer.from(JSON.stringify(answer)))
}

/** Chat with a model whose upstream speaks messages. */
export class ChatOverMessages implements ChatProvider {
  constructor(
    private readonly messages: MessagesProvider,
    private readonly setting: TranslationSetting,
  ) {}

  respond(body: JsonBody<ChatFields>, context: AttemptContext): Promise<ProviderResponse> {
    const verdicts = verdictsOf({ client: 'chat', upstream: 'messages' }, context)
    return answered(chatOverMessages(body, targetOf(this.setting, context), verdicts), context, (request) =>
      this.messages.create({ body: request, betaQuery: false }, context),
    )
  }
}

/** Messages with a model whose upstream speaks chat. */
export class MessagesOverChat implements MessagesProvider {
  constructor(
    private readonly chat: ChatProvider,
    /** Counts tokens, where the channel says so. */
    private readonly responses: ResponsesProvider | undefined,
    private readonly setting: TranslationSetting,
  ) {}

  async create({ body, beta, userProfileId }: MessagesCall, context: AttemptContext): Promise<ProviderResponse> {
    const verdicts = verdictsOf({ client: 'messages', upstream: 'chat' }, context)
    // Names of features; what needs one of them stands in a field, and has a verdict of its own.
    if (beta !== undefined) verdicts.drop('anthropic-beta')
    if (userProfileId !== undefined)
      verdicts.refuse('anthropic-user-profile-id', 'Leave the header out: the upstream knows no such profile.')
    const translation = messagesOverChat(body, targetOf(this.setting, context), verdicts)
    const answer = await answered(translation, context, (request) => this.chat.respond(request, context))
    // The tokens of the request stand in the first event, and the upstream tells them with the last.
    if (body.fields.stream === true) answer.headers[ESTIMATED] = 'message_start.usage'
    return answer
  }

  /** The chat API counts nothing by itself; the Responses API of the same upstream may. */
  async countTokens({ body }: MessagesCall, context: AttemptContext): Promise<ProviderResponse> {
    const verdicts = verdictsOf({ client: 'messages', upstream: 'chat' }, context)
    const { responses } = this
    if (responses === undefined || context.options['countBy'] !== 'responses')
      return counted({ input_tokens: estimateInputTokens(body.fields, false) }, true)
    const translation = countedByResponses(messagesOverChat(body, targetOf(this.setting, context), verdicts))
    return await answered(translation, context, (request) => responses.countInputTokens({ body: request }, context))
  }
}

/** Responses of a model whose upstream speaks chat. */
export class ResponsesOverChat implements ResponsesProvider {
  constructor(
    private readonly chat: ChatProvider,
    private readonly setting: TranslationSetting,
  ) {}

  async create(call: ResponsesCall, context: AttemptContext): Promise<ProviderResponse> {
    const verdicts = verdictsOf({ client: 'responses', upstream: 'chat' }, context)
    const { body } = call.resumed ?? call
    const translation = responsesOverChat(
      body,
      targetOf(this.setting, context, keptTurnOf(call, this.setting)),
      verdicts,
    )
    const answer = await answered(translation, context, (request) => this.chat.respond(request, context))
    return this.setting.keepsResponses ? await keepingTranslated(answer, call.keep) : answer
  }

  /** Chat upstreams count nothing by themselves. */
  countInputTokens(question: ResponsesQuestion, context: AttemptContext): Promise<ProviderResponse> {
    verdictsOf({ client: 'responses', upstream: 'chat' }, context)
    const { body } = question.resumed ?? question
    const answer = { object: 'response.input_tokens', input_tokens: estimateResponseInput(body.fields) }
    return Promise.resolve(counted(answer, true))
  }
}

/** Fields of a messages request that count_tokens does not take: they concern the answer alone. */
const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  'max_tokens',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'metadata',
  'service_tier',
])

/** Responses of a model whose upstream speaks messages. */
export class ResponsesOverMessages implements ResponsesProvider {
  constructor(
    private readonly messages: MessagesProvider,
    private readonly setting: TranslationSetting,
  ) {}

  async create(call: ResponsesCall, context: AttemptContext): Promise<ProviderResponse> {
    const verdicts = verdictsOf({ client: 'responses', upstream: 'messages' }, context)
    const { body } = call.resumed ?? call
    const translation = responsesOverMessages(
      body,
      targetOf(this.setting, context, keptTurnOf(call, this.setting)),
      verdicts,
    )
    const answer = await answered(translation, context, (request) =>
      this.messages.create({ body: request, betaQuery: false }, context),
    )
    return this.setting.keepsResponses ? await keepingTranslated(answer, call.keep) : answer
  }

  /** The upstream counts what it would be sent. */
  async countInputTokens(question: ResponsesQuestion, context: AttemptContext): Promise<ProviderResponse> {
    const verdicts = verdictsOf({ client: 'responses', upstream: 'messages' }, context)
    const { body } = question.resumed ?? question
    return await answered(
      countingRequest(body, targetOf(this.setting, context, keptTurnOf(question, this.setting)), verdicts),
      context,
      (request) => this.messages.countTokens({ body: request, betaQuery: false }, context),
    )
  }
}

/** The translation of a request for a response, to a question about it. */
const countingRequest: Translator<ResponsesFields, MessagesFields> = (body, target, verdicts) => {
  const { max_output_tokens: maximum }: Readonly<Record<string, unknown>> = { ...body.fields }
  // How long an answer may be concerns no count, and no verdict is due where it is left out.
  const limited = { ...body.fields, max_output_tokens: maximum ?? target.facts.maxOutputTokens }
  const translation = responsesOverMessages(body.as(limited), target, verdicts)
  const asked = Object.entries(translation.request.fields).filter(([name]) => !ANSWER_FIELDS.has(name))
  const fields = { ...translation.request.fields, ...Object.fromEntries(asked) }
  return {
    request: JsonBody.written(jsonTextOf(Object.fromEntries(asked)), fields),
    response: ({ input_tokens: tokens }) => JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens }),
    events: () => translation.events(),
    error: (error) => translation.error(error),
  }
}
