import { describe, expect, it } from '@jest/globals'
import type { FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import { isRecord } from '../../src/core/validation-rules.js'
import { shareLab } from '../support/lab-lifetime.js'
import { ANTHROPIC_CLIENTS } from '../support/m1-gateway.js'
import { type MakeClient, OPENAI_CLIENTS } from '../support/sdk-clients.js'
import {
  CHAT_MODEL,
  CHAT_ONLY_MODEL,
  MESSAGES_MODEL,
  startTranslationLab,
  type TranslationLab,
} from '../support/translation-gateway.js'

let lab: TranslationLab

// A channel that fails is not to be spared: each failure here is wanted.
shareLab(async () => (lab = await startTranslationLab({ breaker: { failures: 1000 } })))

interface SeenError {
  readonly name: string
  readonly status: unknown
  readonly code: unknown
  readonly type: unknown
  readonly param: unknown
  readonly hasId: boolean
}

/** What a program sees of a failure; an error's words are its upstream's own. */
async function errorOf(work: () => PromiseLike<unknown>): Promise<SeenError> {
  const error = await Promise.resolve(work()).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!isRecord(error)) throw new Error('It did not fail.')
  const { status, code, type, param, requestID, request_id: olderId, error: body } = error
  const { name } = error.constructor
  const inner = isRecord(body) && isRecord(body['error']) ? body['error']['type'] : undefined
  const hasId = [requestID, olderId].some((id) => typeof id === 'string' && id !== '')
  return { name, status, code, type: inner ?? type, param, hasId }
}

type Ask = (model: string, text: string) => PromiseLike<unknown>

const chatAsks: readonly Ask[] = OPENAI_CLIENTS.map(
  ([, make]) =>
    (model, text) =>
      make(lab.gateway).chat.completions.create({ model, messages: [{ role: 'user', content: text }] }),
)
const responsesAsks: readonly Ask[] = OPENAI_CLIENTS.map(
  ([, make]) =>
    (model, text) =>
      make(lab.gateway).responses.create({ model, input: text }),
)
const messagesAsks: readonly Ask[] = ANTHROPIC_CLIENTS.map(
  ([, make]) =>
    (model, text) =>
      make(lab.gateway).messages.create({ model, max_tokens: 9, messages: [{ role: 'user', content: text }] }),
)

async function readAll(stream: PromiseLike<AsyncIterable<unknown>>): Promise<void> {
  for await (const event of await stream) expect(event).toBeDefined()
}

const chatStreams: readonly Ask[] = OPENAI_CLIENTS.map(
  ([, make]) =>
    (model, text) =>
      readAll(
        make(lab.gateway).chat.completions.create({ model, messages: [{ role: 'user', content: text }], stream: true }),
      ),
)
const messagesStreams: readonly Ask[] = ANTHROPIC_CLIENTS.map(
  ([, make]) =>
    (model, text) =>
      readAll(
        make(lab.gateway).messages.create({
          model,
          max_tokens: 99,
          messages: [{ role: 'user', content: text }],
          stream: true,
        }),
      ),
)

/** Those of one model and fault, by each client. */
const errorsOf = (asks: readonly Ask[], model: string, fault: FaultName): Promise<readonly object[]> =>
  Promise.all(asks.map((ask) => errorOf(() => ask(model, `#${fault} #words=30`))))

/** Members that are the words of an upstream, which the other one does not have; all others are the same. */
const FAULTS: readonly (readonly [FaultName, ...(keyof SeenError)[]])[] = [
  // The messages upstream names a field, and no code; the chat upstream a code, and no field.
  ['400', 'code', 'param'],
  ['401'],
  ['402'],
  ['403'],
  ['404'],
  // The chat upstream has a type of its own for it, and no code.
  ['413', 'code', 'type'],
  ['422', 'code'],
  ['429'],
  ['quota'],
  ['500'],
  ['503'],
  ['529'],
  ['html'],
  ['malformed'],
  ['empty'],
  ['reset'],
]

const without = (errors: readonly object[], names: readonly string[]): readonly object[] =>
  errors.map((error) => Object.fromEntries(Object.entries(error).filter(([name]) => !names.includes(name))))

describe('A failure of an upstream is the same error for the SDKs, natively and translated', () => {
  it.each(FAULTS)('#%s', async (fault, ...differing) => {
    const seen = async (chat: string, responses: readonly string[], messages: string): Promise<object> => ({
      chat: without(await errorsOf(chatAsks, chat, fault), differing),
      responses: (await Promise.all(responses.map((model) => errorsOf(responsesAsks, model, fault)))).map((errors) =>
        without(errors, differing),
      ),
      messages: await errorsOf(messagesAsks, messages, fault),
    })
    const translated = await seen(MESSAGES_MODEL, [MESSAGES_MODEL, CHAT_ONLY_MODEL], CHAT_MODEL)
    expect(translated).toEqual(await seen(CHAT_MODEL, [CHAT_MODEL, CHAT_MODEL], MESSAGES_MODEL))
  })

  it.each([
    // One simulator says that it failed, the other that it has too much to do.
    ['errorframe', 'code', 'type'],
    ['cut'],
    ['cleancut'],
  ] as const)('in the middle of a stream: #%s', async (fault, ...differing) => {
    const seen = async (chat: string, messages: string): Promise<object> => ({
      chat: without(await errorsOf(chatStreams, chat, fault), differing),
      messages: without(await errorsOf(messagesStreams, messages, fault), differing),
    })
    expect(await seen(MESSAGES_MODEL, CHAT_MODEL)).toEqual(await seen(CHAT_MODEL, MESSAGES_MODEL))
  })

  // A native stream breaks as its upstream's did; what the gateway writes itself has the event that the dialect has for it.
  it.each(['errorframe', 'cut', 'cleancut'] as const)(
    'as the last event of a translated response: #%s',
    async (fault) => {
      const endOf = async (make: MakeClient, model: string): Promise<string | undefined> => {
        const stream = await make(lab.gateway).responses.create({ model, input: `#${fault} #words=30`, stream: true })
        const types: string[] = []
        for await (const event of stream) types.push(event.type)
        return types.at(-1)
      }
      const ends = OPENAI_CLIENTS.flatMap(([, make]) => [endOf(make, MESSAGES_MODEL), endOf(make, CHAT_ONLY_MODEL)])
      expect(await Promise.all(ends)).toEqual(ends.map(() => 'response.failed'))
    },
  )
})

describe('What a translation refuses is an error of the SDKs that names the field', () => {
  const REFUSED = { name: 'BadRequestError', status: 400, type: 'invalid_request_error', hasId: true }

  it.each(OPENAI_CLIENTS)('with %s', async (_name, make) => {
    const { chat, responses } = make(lab.gateway)
    const messages = [{ role: 'user' as const, content: 'Hi' }]
    const code = 'unsupported_value'
    expect(await errorOf(() => chat.completions.create({ model: MESSAGES_MODEL, messages, n: 2 }))).toEqual({
      ...REFUSED,
      code,
      param: 'n',
    })
    for (const model of [MESSAGES_MODEL, CHAT_ONLY_MODEL]) {
      const tools = [{ type: 'web_search' as const }]
      expect(await errorOf(() => responses.create({ model, input: 'Hi', tools }))).toEqual({
        ...REFUSED,
        code,
        param: 'tools[0].type',
      })
    }
  })

  it.each(ANTHROPIC_CLIENTS)('with %s', async (_name, make) => {
    const request = { model: CHAT_MODEL, max_tokens: 9, messages: [{ role: 'user' as const, content: 'Hi' }], top_k: 3 }
    const refusal = make(lab.gateway).messages.create(request)
    await expect(refusal).rejects.toThrow("Unsupported value: 'top_k'.")
    expect(await errorOf(() => refusal)).toEqual(REFUSED)
  })
})
