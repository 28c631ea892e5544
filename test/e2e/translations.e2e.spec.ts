import { afterEach, describe, expect, it } from '@jest/globals'
import { THINKING_TEXT } from '@multi-model-gateway/sandbox/m1/m1-thoughts.js'
import { shareLab } from '../support/lab-lifetime.js'
import { ANTHROPIC_CLIENTS, type MakeAnthropic } from '../support/m1-gateway.js'
import { chatHelpers, type MakeClient, OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { comparableAnswer, reportedUnits } from '../support/translated-shape.js'
import { type Chat, type Dialect, type Messages, type Responses, SCENARIOS } from '../support/translation-scenarios.js'
import {
  CHAT_MODEL,
  CHAT_ONLY_MODEL,
  CHAT_ONLY_THINKING_MODEL,
  MESSAGES_MODEL,
  startTranslationLab,
  THINKING_CHAT_MODEL,
  type TranslationLab,
} from '../support/translation-gateway.js'

let lab: TranslationLab

shareLab(async () => (lab = await startTranslationLab()))

/** How a client asks, and reads what it is answered. */
type Ask<Request> = (model: string, request: Request) => Promise<object>
type Forms<Request> = Readonly<Record<string, Ask<Request>>>

const chatForms = (make: MakeClient): Forms<Chat> => ({
  whole: (model, request) => make(lab.gateway).chat.completions.create({ model, ...request }),
  streamed: (model, request) =>
    chatHelpers(make(lab.gateway))
      .stream({ model, ...request, stream_options: { include_usage: true } })
      .finalChatCompletion(),
})

const messagesForms = (make: MakeAnthropic): Forms<Messages> => ({
  whole: (model, request) => make(lab.gateway).messages.create({ model, max_tokens: 1000, ...request }),
  streamed: (model, request) =>
    make(lab.gateway)
      .messages.stream({ model, max_tokens: 1000, ...request })
      .finalMessage(),
})

const responsesForms = (make: MakeClient): Forms<Responses> => ({
  whole: (model, request) => make(lab.gateway).responses.create({ model, ...request }),
  streamed: async (model, request) => {
    const stream = make(lab.gateway).responses.stream({ model, ...request })
    let last: object | undefined
    for await (const event of stream) if ('response' in event) last = event.response
    // Rejects where the order of the events is not right; the older client keeps nothing of `response.incomplete`.
    await stream.finalResponse()
    if (last === undefined) throw new Error('No event holds a response.')
    return last
  },
})

/** Of each client each form. */
const formsOf = <Make, Request>(
  clients: readonly (readonly [name: string, make: Make])[],
  forms: (make: Make) => Forms<Request>,
): readonly (readonly [name: string, ask: Ask<Request>])[] =>
  clients.flatMap(([client, make]) =>
    Object.entries(forms(make)).map(([form, ask]) => [`${client}, ${form}`, ask] as const),
  )

const servedUnder = (model: string): readonly object[] => [
  ...(lab.p1.served.answers[model] ?? []),
  ...(lab.m1.served.answers[model] ?? []),
]

const sorted = (units: readonly object[]): readonly string[] => units.map(comparableUnits).toSorted()

/** Messages upstreams tell for how long they keep what they cache, which means nothing elsewhere. */
const comparableUnits = (units: object): string =>
  JSON.stringify(
    Object.entries(units)
      .filter(([name]) => name !== 'cacheWriteHourTokens')
      .toSorted(),
  )

/** What was reported to clients is what the upstream has served under this model since then. */
async function expectServed(
  model: string,
  before: number,
  reported: readonly Readonly<Record<string, number>>[],
): Promise<void> {
  await Promise.all([lab.p1.idle(), lab.m1.idle()])
  expect(sorted(reported)).toEqual(sorted(servedUnder(model).slice(before)))
}

/** All cells of one scenario in one dialect at once: every client and form, natively and translated. */
async function expectSame<Request>(
  dialect: Dialect,
  request: Request,
  { native, translated }: { readonly native: string; readonly translated: readonly string[] },
  asks: readonly (readonly [name: string, ask: Ask<Request>])[],
  differs: readonly string[] = [],
): Promise<void> {
  const answers = new Map<string, object>()
  const servedBefore = translated.map((model) => servedUnder(model).length)
  await Promise.all(
    asks.flatMap(([name, ask]) =>
      [native, ...translated].map(async (model) => answers.set(`${name}: ${model}`, await ask(model, request))),
    ),
  )
  const answerOf = (name: string, model: string): object => answers.get(`${name}: ${model}`) ?? {}
  const shapesOf = (modelOf: (model: string) => string): object =>
    Object.fromEntries(
      asks.flatMap(([name]) =>
        translated.map((model) => [
          `${name}: ${model}`,
          comparableAnswer(answerOf(name, modelOf(model)), dialect, differs),
        ]),
      ),
    )
  expect(shapesOf((model) => model)).toEqual(shapesOf(() => native))
  for (const [index, model] of translated.entries()) {
    const reported = asks.map(([name]) => reportedUnits(answerOf(name, model), dialect))
    await expectServed(model, servedBefore[index] ?? 0, reported)
  }
}

const rowsOf = (dialect: Dialect) => Object.entries(SCENARIOS).filter(([, scenario]) => dialect in scenario)

describe('The same request, natively and translated, is answered the same, and used what the upstream says', () => {
  /** No judge of an upstream has refused anything. */
  afterEach(() => {
    expect([...lab.p1.violations, ...lab.m1.violations]).toEqual([])
  })

  it.each(rowsOf('chat'))('chat over messages: %s', async (_name, { chat, isThought, differs, isHelperless }) => {
    if (chat === undefined) throw new Error('No request')
    const models = { native: isThought === true ? THINKING_CHAT_MODEL : CHAT_MODEL, translated: [MESSAGES_MODEL] }
    const asks = formsOf(OPENAI_CLIENTS, chatForms).filter(([name]) => isHelperless !== true || name.endsWith('whole'))
    await expectSame('chat', chat, models, asks, differs?.chat)
  })

  it.each(rowsOf('messages'))('messages over chat: %s', async (_name, { messages, isThought, differs }) => {
    if (messages === undefined) throw new Error('No request')
    const models = { native: MESSAGES_MODEL, translated: [isThought === true ? THINKING_CHAT_MODEL : CHAT_MODEL] }
    await expectSame('messages', messages, models, formsOf(ANTHROPIC_CLIENTS, messagesForms), differs?.messages)
  })

  it.each(rowsOf('responses'))('responses over both: %s', async (_name, { responses, isThought, differs }) => {
    if (responses === undefined) throw new Error('No request')
    const models =
      isThought === true
        ? { native: THINKING_CHAT_MODEL, translated: [MESSAGES_MODEL, CHAT_ONLY_THINKING_MODEL] }
        : { native: CHAT_MODEL, translated: [MESSAGES_MODEL, CHAT_ONLY_MODEL] }
    await expectSame('responses', responses, models, formsOf(OPENAI_CLIENTS, responsesForms), differs?.responses)
  })

  const LONG = 'a rule '.repeat(200)
  const MARK = { prompt_cache_breakpoint: { mode: 'explicit' } } as const

  it('counts what the upstream wrote to its cache, and then read from it', async () => {
    const before = servedUnder(MESSAGES_MODEL).length
    const twice = async (dialect: Dialect, ask: () => Promise<object>): Promise<Readonly<Record<string, number>>[]> => [
      reportedUnits(await ask(), dialect),
      reportedUnits(await ask(), dialect),
    ]
    const chats = formsOf(OPENAI_CLIENTS, chatForms).map(([name, ask]) => {
      const content = [{ type: 'text' as const, text: `chat ${name} ${LONG}`, ...MARK }]
      const messages = [
        { role: 'system' as const, content },
        { role: 'user' as const, content: 'Hi' },
      ]
      return twice('chat', () => ask(MESSAGES_MODEL, { messages }))
    })
    const responses = formsOf(OPENAI_CLIENTS, responsesForms).map(([name, ask]) => {
      const content = [{ type: 'input_text' as const, text: `response ${name} ${LONG}`, ...MARK }]
      return twice('responses', () => ask(MESSAGES_MODEL, { input: [{ role: 'user', content }] }))
    })
    const reported = await Promise.all([...chats, ...responses])
    for (const [first, second] of reported) {
      expect(first?.['cacheWriteTokens']).toBeGreaterThan(300)
      expect(second?.['cachedTokens']).toBe(first?.['cacheWriteTokens'])
    }
    await expectServed(MESSAGES_MODEL, before, reported.flat())
  })

  it('shows what the upstream thought where the client’s dialect has a place for it', async () => {
    const chat = { messages: [{ role: 'user' as const, content: 'Think' }], reasoning_effort: 'low' as const }
    await Promise.all(
      formsOf(OPENAI_CLIENTS, chatForms).map(async ([name, ask]) => {
        // Of what they do not know the helpers keep the last piece alone; whole blocks stand in one piece.
        const text = name.endsWith('whole') ? THINKING_TEXT : expect.any(String)
        const message = { reasoning_content: text, thinking_blocks: [{ thinking: THINKING_TEXT }] }
        expect(await ask(MESSAGES_MODEL, chat)).toMatchObject({ choices: [{ message }] })
      }),
    )
    const response = { input: 'Think', reasoning: { effort: 'low' as const, summary: 'auto' as const } }
    const item = { type: 'reasoning', summary: [{ text: THINKING_TEXT }], encrypted_content: expect.any(String) }
    await Promise.all(
      formsOf(OPENAI_CLIENTS, responsesForms).map(async ([, ask]) => {
        expect(await ask(MESSAGES_MODEL, response)).toMatchObject({ output: [item, { type: 'message' }] })
      }),
    )
  })
})
