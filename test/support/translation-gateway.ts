import type Anthropic from '@anthropic-ai/sdk'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import type OpenAI from 'openai'
import { startGateway, TEST_KEY, type TestGateway } from './gateway.js'
import { UPSTREAM_KEY } from './provider-gateways.js'

/** A key that takes no translation with losses. */
export const STRICT_KEY = 'strict-gateway-key'

/** Of each simulator, one that thinks only when it is asked to. */
export const CHAT_MODEL = 'gpt-4o-mini'
export const MESSAGES_MODEL = 'claude-sonnet-4-5'

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
      models: [{ id: 'gpt-4o', class: 'chat', providers: ['p1'], dialects: ['chat'] }],
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

/** Served on chat alone, so that everything else is translated to it. */
export const CHAT_ONLY_MODEL = 'gpt-4o'

/** What an answer says, whatever dialect it came in: what must be the same natively and translated. */
export interface Said {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly input: unknown }[]
  readonly end: string
  readonly hasUsage: boolean
}

export function saidInChat({ choices, usage }: OpenAI.ChatCompletion): Said {
  const [choice] = choices
  return {
    text: choice?.message.content ?? '',
    calls: (choice?.message.tool_calls ?? []).map((call) =>
      call.type === 'function'
        ? { name: call.function.name, input: JSON.parse(call.function.arguments) as unknown }
        : { name: call.custom.name, input: call.custom.input },
    ),
    end: choice?.finish_reason ?? '',
    hasUsage: (usage?.prompt_tokens ?? 0) > 0 && (usage?.completion_tokens ?? 0) > 0,
  }
}

const CHAT_ENDS: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  tool_use: 'tool_calls',
}

export function saidInMessages({ content, stop_reason: stopReason, usage }: Anthropic.Message): Said {
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [{ name: block.name, input: block.input }] : [])),
    end: CHAT_ENDS[String(stopReason)] ?? String(stopReason),
    hasUsage: usage.input_tokens > 0 && usage.output_tokens > 0,
  }
}

export function saidInResponse({ output, status, usage }: OpenAI.Responses.Response): Said {
  const calls = output.flatMap((item) =>
    item.type === 'function_call' ? [{ name: item.name, input: JSON.parse(item.arguments) as unknown }] : [],
  )
  return {
    text: output
      .flatMap((item) => (item.type === 'message' ? item.content : []))
      .map((part) => (part.type === 'output_text' ? part.text : ''))
      .join(''),
    calls,
    end: status === 'incomplete' ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
    hasUsage: (usage?.input_tokens ?? 0) > 0 && (usage?.output_tokens ?? 0) > 0,
  }
}
