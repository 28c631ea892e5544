import { afterEach, describe, expect, it } from '@jest/globals'
import { chatTraits, isKnownChatModel, isReasoning } from '@multi-model-gateway/sandbox/p1/chat-models.js'
import { isKnownM1Model, m1Model } from '@multi-model-gateway/sandbox/m1/m1-models.js'
import { PROVIDERS } from '../../src/app/providers.js'
import { builtInModels } from '../../src/routing/channel.js'
import { sendRaw } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { startTranslationLab, type TranslationLab } from '../support/translation-gateway.js'

const idsOf = (modelClass: string): readonly string[] =>
  builtInModels(PROVIDERS)
    .filter((row) => row.class === modelClass)
    .map(({ id }) => id)

const CHAT_IDS = idsOf('chat')
const MESSAGES_IDS = idsOf('messages')

/** As their pages say. */
const READS_TEXT_ALONE =
  /^(gpt-3\.5.*|gpt-4(-32k)?(-0314|-0613)?|gpt-4-(1106|0125|turbo)-preview|o1-(preview|mini).*|o3-mini.*)$/
const PIXEL = 'iVBORw0KGgo='

let lab: TranslationLab
shareLab(async () => {
  // Without the Responses API, so that responses are translated as well; facts are those of the catalogue.
  const models = CHAT_IDS.map((id) => ({ id, class: 'chat', providers: ['p1'], dialects: ['chat'] }))
  return (lab = await startTranslationLab({ models }))
})

async function send(path: string, fields: object): Promise<string> {
  const { status, text } = await sendRaw(lab.gateway.url, { path, body: JSON.stringify(fields) })
  return status === 200 ? 'accepted' : text
}

const message = (model: string, fields: object): Promise<string> =>
  send('/v1/messages', { model, max_tokens: 4096, messages: [{ role: 'user', content: 'Hello' }], ...fields })

const chat = (model: string, fields: object): Promise<string> =>
  send('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }], ...fields })

const response = (model: string, fields: object): Promise<string> =>
  send('/v1/responses', { model, input: 'Hello', ...fields })

/** What became of each request that was not accepted. */
const refused = async (answers: readonly Promise<string>[], names: readonly string[]): Promise<readonly string[]> =>
  (await Promise.all(answers)).flatMap((answer, index) => (answer === 'accepted' ? [] : [`${names[index]}: ${answer}`]))

const efforts = ['low', 'medium', 'high', 'xhigh', 'max']
const tool = { name: 'look', input_schema: { type: 'object' } }
const fn = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }

describe('Every chat model of the catalogue', () => {
  afterEach(() => {
    expect(lab.p1.violations).toEqual([])
    lab.p1.reset()
  })

  it('is known to the judge, which takes anything for others', () => {
    expect(CHAT_IDS.filter((id) => !isKnownChatModel(id))).toEqual([])
  })

  const budgets = [1024, 2048, 8192, 16_384, 31_999, 32_000, 64_000]
  const unbudgeted: readonly object[] = [
    { thinking: { type: 'disabled' } },
    { thinking: { type: 'disabled' }, output_config: { effort: 'low' } },
    { thinking: { type: 'adaptive' } },
    { thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } },
    ...efforts.map((effort) => ({ output_config: { effort } })),
  ]
  /** A budget is below the maximum, which no model takes above its own. */
  const formsFor = (model: string): readonly object[] => [
    ...unbudgeted,
    ...budgets
      .filter((budget) => budget < chatTraits(model).maxOutputTokens)
      .map((budget_tokens) => ({ max_tokens: budget_tokens + 1, thinking: { type: 'enabled', budget_tokens } })),
  ]

  it.each(CHAT_IDS)('takes every form of thinking of messages clients: %s', async (model) => {
    const forms = formsFor(model)
    const answers = forms.map((fields) => message(model, fields))
    expect(
      await refused(
        answers,
        forms.map((fields) => JSON.stringify(fields)),
      ),
    ).toEqual([])
  })

  it.each(CHAT_IDS)('gets what it takes of marks, instructions and pictures: %s', async (model) => {
    const content = [{ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' } }]
    const messages = [
      { role: 'user', content },
      { role: 'system', content: 'Be short.' },
    ]
    expect(await message(model, { messages })).toBe('accepted')
    const sent = lab.p1.lastRequest?.body.toString() ?? ''
    expect(sent.includes('prompt_cache_breakpoint')).toBe(/^gpt-(5\.6|6)/.test(model))
    expect(/"role":"developer"/.test(sent)).toBe(isReasoning(model) && !/^o1-(preview|mini)/.test(model))
    const asked = lab.p1.requests.length
    const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }
    const answer = await message(model, { messages: [{ role: 'user', content: [picture] }] })
    expect(answer).toMatch(READS_TEXT_ALONE.test(model) ? /The model does not read images/ : 'accepted')
    expect(lab.p1.requests.length - asked).toBe(READS_TEXT_ALONE.test(model) ? 0 : 1)
  })

  it.each(CHAT_IDS)('takes tools with and without thinking: %s', async (model) => {
    const forms = [{}, { thinking: { type: 'adaptive' } }, { output_config: { effort: 'high' } }]
    const named = forms.map((form) => JSON.stringify(form))
    expect(
      await refused(
        forms.map((form) => message(model, { ...form, tools: [tool] })),
        named,
      ),
    ).toEqual([])
    const reasoning = [null, { effort: 'high' }]
    expect(
      await refused(
        reasoning.map((asked) => response(model, { reasoning: asked, tools: [fn] })),
        ['no effort', 'high'],
      ),
    ).toEqual([])
  })

  it.each(CHAT_IDS)('takes every effort of clients of responses: %s', async (model) => {
    const named = ['none', 'minimal', ...efforts]
    expect(
      await refused(
        named.map((effort) => response(model, { reasoning: { effort } })),
        named,
      ),
    ).toEqual([])
  })
})

const REFUSED_CHOICE = expect.stringContaining("Unsupported value: 'tool_choice'")

describe('Every messages model of the catalogue', () => {
  afterEach(() => {
    expect(lab.m1.violations).toEqual([])
    lab.m1.reset()
  })

  it('is known to the judge, which takes most for others', () => {
    expect(MESSAGES_IDS.filter((id) => !isKnownM1Model(id))).toEqual([])
  })

  const named = [undefined, 'none', 'minimal', ...efforts]
  const chatTool = { type: 'function', function: { name: 'look', parameters: fn.parameters } }
  /** What thinking forbids upstream, or has to fit into. */
  const besides = (tools: readonly object[], maximum: string): readonly object[] => [
    {},
    ...[1024, 1025].map((tokens) => ({ [maximum]: tokens })),
    { temperature: 0.5 },
    { top_p: 0.5 },
    { tools, tool_choice: 'required' },
  ]
  const chatForms = besides([chatTool], 'max_completion_tokens').flatMap((beside) =>
    named.map((reasoning_effort) => ({ ...beside, reasoning_effort })),
  )
  const responsesForms = named.flatMap((effort) => [
    { reasoning: { effort } },
    ...besides([fn], 'max_output_tokens').map((beside) => ({ ...beside, reasoning: { effort, summary: 'auto' } })),
  ])

  it.each(MESSAGES_IDS)(
    'takes every effort of clients of the other dialects, whatever stands beside it: %s',
    async (model) => {
      const isTaken = (fields: object): boolean => m1Model(model).forcedTools || !('tool_choice' in fields)
      const forms = [
        ...chatForms.filter(isTaken).map((fields) => ({ ask: chat, fields })),
        ...responsesForms.filter(isTaken).map((fields) => ({ ask: response, fields })),
      ]
      const answers = forms.map(({ ask, fields }) => ask(model, fields))
      expect(
        await refused(
          answers,
          forms.map(({ fields }) => JSON.stringify(fields)),
        ),
      ).toEqual([])
    },
  )

  it.each(MESSAGES_IDS)('is forced to call a tool only where it can be: %s', async (model) => {
    const forced = { type: 'function', name: 'look' }
    const answers = await Promise.all([
      chat(model, { tools: [chatTool], tool_choice: { type: 'function', function: { name: 'look' } } }),
      response(model, { tools: [fn], tool_choice: forced }),
    ])
    const { forcedTools } = m1Model(model)
    expect(answers).toEqual(forcedTools ? ['accepted', 'accepted'] : [REFUSED_CHOICE, REFUSED_CHOICE])
    expect(lab.m1.requests).toHaveLength(forcedTools ? 2 : 0)
  })
})
