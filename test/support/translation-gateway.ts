import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { startGateway, TEST_KEY, type TestGateway } from './gateway.js'
import { UPSTREAM_KEY } from './provider-gateways.js'

/** A key that takes no translation with losses. */
export const STRICT_KEY = 'strict-gateway-key'

/** Of each simulator, one that thinks only when it is asked to. */
export const CHAT_MODEL = 'gpt-4o-mini'
export const MESSAGES_MODEL = 'claude-sonnet-4-5'
/** Of the models of both upstreams; each kind of token has a price of its own. */
export const TRANSLATION_PRICES = [
  { models: [MESSAGES_MODEL], promptTokens: 3_000_000, completionTokens: 15_000_000 },
  { models: ['gpt-*'], promptTokens: 1_000_000, completionTokens: 4_000_000 },
]

/** Served on chat alone, so that everything else is translated to it. */
export const CHAT_ONLY_MODEL = 'gpt-4o'
/** Models that think. */
export const THINKING_CHAT_MODEL = 'gpt-5-mini'
export const CHAT_ONLY_THINKING_MODEL = 'gpt-5-nano'

/** A gateway that translates, with a chat and a messages upstream behind it. */
export interface TranslationLab {
  readonly gateway: TestGateway
  readonly p1: Simulator
  readonly m1: Simulator
  readonly close: () => Promise<void>
}

/** `options`: of the chat upstream's channel. */
export async function startTranslationLab(sections: object = {}, options: object = {}): Promise<TranslationLab> {
  const p1 = await startP1Simulator({ apiKey: UPSTREAM_KEY })
  const m1 = await startM1Simulator({ apiKey: UPSTREAM_KEY })
  const channel = (id: string, { url }: Simulator) => ({ id, provider: id, baseUrl: url, credentials: UPSTREAM_KEY })
  const gateway = await startGateway({
    channels: [{ ...channel('p1', p1), options }, channel('m1', m1)],
    keys: [
      { id: 'test', key: TEST_KEY },
      { id: 'strict', key: STRICT_KEY, translation: 'strict' },
    ],
    sections: {
      dialects: { translate: 'on' },
      // Chat alone, so that responses and messages are translated to it; the simulator knows the name of another model.
      models: [CHAT_ONLY_MODEL, CHAT_ONLY_THINKING_MODEL].map((id) => ({
        id,
        class: 'chat',
        providers: ['p1'],
        dialects: ['chat'],
      })),
      ...sections,
    },
  })
  return {
    gateway,
    p1,
    m1,
    close: async () => {
      await gateway.close()
      await p1.close()
      await m1.close()
    },
  }
}
