import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import type { ModelClass } from '../config/channel-config.js'
import { parseConfig } from '../config/load-config.js'
import type { CountedUnits } from '../core/counted-units.js'
import { BUILT_IN_MODELS } from '../routing/models.table.js'
import { PriceTable } from './price-table.js'

const { prices } = parse(readFileSync(new URL('../../gateway.example.yaml', import.meta.url), 'utf8')) as {
  readonly prices: object[]
}
const table = new PriceTable(parseConfig(JSON.stringify({ prices }), {}).prices)

const TOKENS: CountedUnits = { promptTokens: 9, cachedTokens: 2, completionTokens: 5, reasoningTokens: 1 }
const AUDIO_TOKENS: CountedUnits = { ...TOKENS, audioInputTokens: 3, cachedAudioTokens: 1, audioOutputTokens: 2 }
const SPEECH: readonly CountedUnits[] = [{ characters: 5 }, { promptTokens: 2, completionTokens: 9 }]
const HEARD: readonly CountedUnits[] = [
  { audioSeconds: 5.5 },
  { promptTokens: 5, audioInputTokens: 5, completionTokens: 2 },
]

/** Everything that upstreams of a class report, or the gateway counts for them. */
const USED: Readonly<Record<ModelClass, readonly CountedUnits[]>> = {
  tts: [{ characters: 5 }],
  'tts-style': SPEECH,
  'stt-standard': [{ audioSeconds: 5.5 }],
  'stt-generation': HEARD,
  'stt-diarize': HEARD,
  chat: [TOKENS],
  'chat-audio': [AUDIO_TOKENS],
  messages: [{ ...TOKENS, cacheWriteTokens: 3, cacheWriteHourTokens: 1 }],
  realtime: [AUDIO_TOKENS],
  video: [{ videos: 1 }],
  image: [{ images: 1 }],
}

describe('The example’s price table', () => {
  it.each(BUILT_IN_MODELS.map(({ id, class: modelClass }) => [id, modelClass] as const))(
    'has a price for all that %s (%s) uses',
    (id, modelClass) => {
      for (const units of USED[modelClass])
        expect(Number(table.find(id, 'any', 'request')?.costOf(units, 1))).toBeGreaterThan(0)
    },
  )

  it.each<[string, string, CountedUnits]>([
    ['documents', 'request', { documents: 1, pages: 4 }],
    ['images', 'task', { images: 1 }],
    ['p2-tts', 'request', { characters: 3 }],
    ['gpt-realtime', 'input_transcription', { audioSeconds: 2 }],
    ['gpt-realtime', 'input_transcription', { promptTokens: 2, audioInputTokens: 2, completionTokens: 1 }],
  ])('has a price for %s (%s)', (model, kind, units) => {
    expect(Number(table.find(model, 'any', kind as 'request')?.costOf(units, 1))).toBeGreaterThan(0)
  })
})
