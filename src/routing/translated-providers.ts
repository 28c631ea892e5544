import type { WritingDialect } from '../config/model-classes.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { JsonBody } from '../core/json-body.js'
import { estimateInputTokens } from '../dialects/anthropic-messages.js'
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
import { countedByMessages } from '../dialects/translations/responses-over-messages/counted-request.js'
import { responsesOverMessages } from '../dialects/translations/responses-over-messages/responses-over-messages.js'
import {
  type KeptTurn,
  type QuestionTranslation,
  sendTranslated,
  type Translation,
  type TranslationTarget,
  type Translator,
} from '../dialects/translator.js'
import { type DialectPair, ESTIMATED_HEADER, Verdicts } from '../dialects/verdicts.js'
import type {
  AttemptContext,
  ChatProvider,
  MessagesCall,
  MessagesProvider,
  ProviderCapabilities,
  ResponsesProvider,
  RoutedProviderOf,
} from '../providers/contract.js'

/** What translations for a model and a caller depend on. */
export interface TranslationSetting extends Pick<TranslationTarget, 'facts' | 'seals' | 'thoughts' | 'unknownWords'> {
  readonly pair: DialectPair
  /** Whether the gateway keeps responses, as their upstream keeps none. */
  readonly keepsResponses: boolean
}

/** What an attempt is translated with; its record shows the verdicts. */
function translationInputs(
  { pair, ...setting }: TranslationSetting,
  context: AttemptContext,
  kept?: KeptTurn,
): readonly [TranslationTarget, Verdicts] {
  const { upstreamModel, requestId, memory, isStrict } = context
  const verdicts = new Verdicts(pair, isStrict)
  context.record.translation = verdicts
  return [{ ...setting, kept, upstreamModel, requestId, memory }, verdicts]
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

/** A response of a model whose upstream speaks another dialect. */
async function translatedResponse<Fields extends object>(
  translator: Translator<ResponsesFields, Fields>,
  call: ResponsesCall,
  setting: TranslationSetting,
  context: AttemptContext,
  send: (request: JsonBody<Fields>) => Promise<ProviderResponse>,
): Promise<ProviderResponse> {
  const { body } = call.resumed ?? call
  const translation = translator(body, ...translationInputs(setting, context, keptTurnOf(call, setting)))
  const answer = await answered(translation, context, send)
  return setting.keepsResponses ? await keepingTranslated(answer, () => translation.made?.(), call.keep) : answer
}

/** The answer to a question about tokens that the gateway has counted itself. */
const estimated = (answer: object): ProviderResponse =>
  new ProviderResponse(
    200,
    { 'content-type': 'application/json', [ESTIMATED_HEADER]: 'true' },
    Buffer.from(JSON.stringify(answer)),
  )

/** Chat with a model whose upstream speaks messages. */
class ChatOverMessages implements ChatProvider {
  constructor(
    private readonly messages: MessagesProvider,
    private readonly setting: TranslationSetting,
  ) {}

  respond(body: JsonBody<ChatFields>, context: AttemptContext): Promise<ProviderResponse> {
    return answered(chatOverMessages(body, ...translationInputs(this.setting, context)), context, (request) =>
      this.messages.create({ body: request, betaQuery: false }, context),
    )
  }
}

/** Messages with a model whose upstream speaks chat. */
class MessagesOverChat implements MessagesProvider {
  constructor(
    private readonly chat: ChatProvider,
    /** Counts tokens, where the channel says so. */
    private readonly responses: ResponsesProvider | undefined,
    private readonly setting: TranslationSetting,
  ) {}

  async create(call: MessagesCall, context: AttemptContext): Promise<ProviderResponse> {
    const translation = this.translated(call, context)
    const answer = await answered(translation, context, (request) => this.chat.respond(request, context))
    // The tokens of the request stand in the first event, and the upstream reports them with the last.
    if (call.body.fields.stream === true) answer.headers[ESTIMATED_HEADER] = 'message_start.usage'
    return answer
  }

  /** The chat API counts nothing by itself; the Responses API of the same upstream may. */
  async countTokens(call: MessagesCall, context: AttemptContext): Promise<ProviderResponse> {
    const translation = this.translated(call, context)
    const { responses } = this
    if (responses === undefined || context.options['countBy'] !== 'responses')
      return estimated({ input_tokens: estimateInputTokens(call.body.fields, false) })
    return await answered(countedByResponses(translation), context, (request) =>
      responses.countInputTokens({ body: request }, context),
    )
  }

  private translated({ body, beta, userProfileId }: MessagesCall, context: AttemptContext): Translation<ChatFields> {
    const [target, verdicts] = translationInputs(this.setting, context)
    // Names of features; what needs one of them stands in a field, and has a verdict of its own.
    if (beta !== undefined) verdicts.drop('anthropic-beta')
    if (userProfileId !== undefined)
      verdicts.refuse('anthropic-user-profile-id', 'Leave the header out: the upstream knows no such profile.')
    return messagesOverChat(body, target, verdicts)
  }
}

/** Responses of a model whose upstream speaks chat. */
class ResponsesOverChat implements ResponsesProvider {
  constructor(
    private readonly chat: ChatProvider,
    private readonly setting: TranslationSetting,
  ) {}

  create(call: ResponsesCall, context: AttemptContext): Promise<ProviderResponse> {
    return translatedResponse(responsesOverChat, call, this.setting, context, (request) =>
      this.chat.respond(request, context),
    )
  }

  /** Chat upstreams count nothing by themselves. What cannot be translated is refused all the same: the answer would be of no request. */
  countInputTokens(question: ResponsesQuestion, context: AttemptContext): Promise<ProviderResponse> {
    const { body } = question.resumed ?? question
    responsesOverChat(body, ...translationInputs(this.setting, context, keptTurnOf(question, this.setting)))
    const answer = { object: 'response.input_tokens', input_tokens: estimateResponseInput(body.fields) }
    return Promise.resolve(estimated(answer))
  }
}

/** Responses of a model whose upstream speaks messages. */
class ResponsesOverMessages implements ResponsesProvider {
  constructor(
    private readonly messages: MessagesProvider,
    private readonly setting: TranslationSetting,
  ) {}

  create(call: ResponsesCall, context: AttemptContext): Promise<ProviderResponse> {
    return translatedResponse(responsesOverMessages, call, this.setting, context, (request) =>
      this.messages.create({ body: request, betaQuery: false }, context),
    )
  }

  /** The upstream counts what it would be sent. */
  async countInputTokens(question: ResponsesQuestion, context: AttemptContext): Promise<ProviderResponse> {
    const { body } = question.resumed ?? question
    const translation = countedByMessages(
      body,
      ...translationInputs(this.setting, context, keptTurnOf(question, this.setting)),
    )
    return await answered(translation, context, (request) =>
      this.messages.countTokens({ body: request, betaQuery: false }, context),
    )
  }
}

/** How a client's dialect is served over an upstream's. */
interface TranslationEntry<Provider> {
  readonly over: WritingDialect
  /** undefined where the upstream does not speak that dialect. */
  readonly provider: (capabilities: ProviderCapabilities, setting: TranslationSetting) => Provider | undefined
}

/** For each dialect of clients those of upstreams that it is served over, the one that keeps most first. */
export const TRANSLATIONS: {
  readonly [Dialect in WritingDialect]: readonly TranslationEntry<RoutedProviderOf<Dialect>>[]
} = {
  chat: [
    { over: 'messages', provider: ({ messages }, setting) => messages && new ChatOverMessages(messages, setting) },
  ],
  messages: [
    {
      over: 'chat',
      provider: ({ chat, responses }, setting) => chat && new MessagesOverChat(chat, responses, setting),
    },
  ],
  responses: [
    {
      over: 'messages',
      provider: ({ messages }, setting) => messages && new ResponsesOverMessages(messages, setting),
    },
    { over: 'chat', provider: ({ chat }, setting) => chat && new ResponsesOverChat(chat, setting) },
  ],
}
