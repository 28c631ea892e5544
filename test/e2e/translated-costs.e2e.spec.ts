import { describe, expect, it } from '@jest/globals'
import { sendRaw, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import {
  CHAT_ONLY_MODEL,
  CHAT_ONLY_THINKING_MODEL,
  MESSAGES_MODEL,
  startTranslationLab,
  TRANSLATION_PRICES,
  type TranslationLab,
} from '../support/translation-gateway.js'
import { type Dialect, type Scenario, SCENARIOS } from '../support/translation-scenarios.js'
import { recordWhere } from '../support/usage-lab.js'

let lab: TranslationLab
shareLab(async () => (lab = await startTranslationLab({ database: {}, prices: TRANSLATION_PRICES })))

const DIALECTS = ['chat', 'messages', 'responses'] as const
const ENDPOINTS: Readonly<Record<Dialect, readonly [path: string, maximum: object]>> = {
  chat: ['/v1/chat/completions', { max_completion_tokens: 4000 }],
  messages: ['/v1/messages', { max_tokens: 4000 }],
  responses: ['/v1/responses', { max_output_tokens: 4000, store: false }],
}

const dialectsOf = (scenario: Scenario): readonly Dialect[] => DIALECTS.filter((dialect) => dialect in scenario)

/** Cost and units of the request in this dialect, as they are recorded. */
async function costOf(dialect: Dialect, model: string, scenario: Scenario): Promise<object> {
  const [path, maximum] = ENDPOINTS[dialect]
  const { status, headers } = await sendRaw(lab.gateway.url, {
    path,
    body: JSON.stringify({ model, ...maximum, ...scenario[dialect] }),
    headers: { authorization: `Bearer ${TEST_KEY}` },
  })
  const record = await recordWhere(lab.gateway, ({ request_id: id }) => id === headers['x-request-id'])
  expect([dialect, status, record.pricing]).toEqual([dialect, 200, 'priced'])
  return { cost: record.cost, units: record.units }
}

const SHARED = Object.entries(SCENARIOS).filter(([, scenario]) => dialectsOf(scenario).length > 1)

describe.each(['messages', 'chat'])(
  'The same conversation with a %s upstream costs the same in every dialect',
  (upstream) => {
    it.each(SHARED)('%s', async (_name, scenario) => {
      const chatModel = scenario.isThought === true ? CHAT_ONLY_THINKING_MODEL : CHAT_ONLY_MODEL
      const model = upstream === 'chat' ? chatModel : MESSAGES_MODEL
      const costs: object[] = []
      for (const dialect of dialectsOf(scenario)) costs.push(await costOf(dialect, model, scenario))
      expect(costs).toEqual(costs.map(() => costs[0]))
    })
  },
)
