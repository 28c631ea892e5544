import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { PROVIDERS } from '../../src/app/providers.js'
import type { ModelClass } from '../../src/config/model-classes.js'
import { builtInModels } from '../../src/routing/channel.js'

const rows = new Map(builtInModels(PROVIDERS).map((row) => [row.id, row]))

/** The ids in a union of an SDK's types, where its declaration begins. */
function idsOf(file: string, declaration: RegExp): readonly string[] {
  const [, union = ''] = declaration.exec(readFileSync(`node_modules/${file}`, 'utf8')) ?? []
  return [...union.matchAll(/'([^']+)'/g)].map(([, id = '']) => id)
}

const OPENAI = 'openai/resources'
const ANTHROPIC = 'resources/messages/messages.d.ts'
const CLAUDE = /export type Model = ([^;]+);/
const GPT_REALTIME = /export interface RealtimeSessionCreateRequest \{[^]*?\n {4}model\?: ([^;]+);/

const RESPONSES = /export type ResponsesModel = ([^;]+);/

const UNIONS: readonly [string, string, RegExp, readonly ModelClass[]][] = [
  ['ChatModel', `${OPENAI}/shared.d.ts`, /export type ChatModel = ([^;]+);/, ['chat', 'chat-audio', 'responses']],
  [
    'AudioModel',
    `${OPENAI}/audio/audio.d.ts`,
    /export type AudioModel = ([^;]+);/,
    ['stt-standard', 'stt-generation', 'stt-diarize'],
  ],
  ['SpeechModel', `${OPENAI}/audio/speech.d.ts`, /export type SpeechModel = ([^;]+);/, ['tts', 'tts-style']],
  ['ResponsesModel', `${OPENAI}/shared.d.ts`, RESPONSES, ['responses']],
  ['EmbeddingModel', `${OPENAI}/embeddings.d.ts`, /export type EmbeddingModel = ([^;]+);/, ['embedding']],
  ['the models of realtime sessions', `${OPENAI}/realtime/realtime.d.ts`, GPT_REALTIME, ['realtime']],
  ['Model of the older messages SDK', `@anthropic-ai/sdk/${ANTHROPIC}`, CLAUDE, ['messages']],
  ['Model of the newer messages SDK', `anthropic-sdk-1/${ANTHROPIC}`, CLAUDE, ['messages']],
]

const AUDIO_CHAT = 'it speaks in chat; the types name it among realtime models as well'

/** Ids in the types that are not in the catalogue with a class of their union, and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'gpt-audio-1.5': AUDIO_CHAT,
  'gpt-audio-mini': AUDIO_CHAT,
  'gpt-audio-mini-2025-10-06': AUDIO_CHAT,
  'gpt-audio-mini-2025-12-15': AUDIO_CHAT,
}

describe('The catalogue', () => {
  it.each(UNIONS)('has every model of %s, with its class', (_name, file, declaration, classes) => {
    const ids = idsOf(file, declaration)
    expect(ids.length).toBeGreaterThan(2)
    const wrong = ids.filter((id) => {
      const row = rows.get(id)
      return (row === undefined || !classes.includes(row.class)) && !Object.hasOwn(EXCEPTIONS, id)
    })
    expect(wrong).toEqual([])
  })

  it('has no exception that the types do not know', () => {
    const known = new Set(UNIONS.flatMap(([, file, declaration]) => idsOf(file, declaration)))
    expect(Object.keys(EXCEPTIONS).filter((id) => !known.has(id))).toEqual([])
  })

  it('has real days, none after the day it was made, and no other day than the one in an id', () => {
    const asOf = '2026-11-27'
    expect(readFileSync('src/providers/p1/p1-models.ts', 'utf8')).toContain(`as of ${asOf}`)
    expect(readFileSync('src/providers/m1/m1-models.ts', 'utf8')).toContain(`as of ${asOf}`)
    expect(readFileSync('docs/operations.md', 'utf8')).toContain(`as of ${asOf}`)
    const dated = [...rows.values()].filter(({ createdAt }) => createdAt !== undefined)
    expect(dated.length).toBeGreaterThan(100)
    for (const { id, createdAt = '' } of dated) {
      expect([id, new Date(createdAt).toISOString()]).toEqual([id, `${createdAt}T00:00:00.000Z`])
      expect([id, createdAt <= asOf]).toEqual([id, true])
      const [inId] = /20\d\d-\d\d-\d\d$/.exec(id) ?? []
      expect([id, createdAt]).toEqual([id, inId ?? createdAt])
    }
  })

  it('knows every model that is said to think', () => {
    for (const { models, reasoningModels = [] } of PROVIDERS) {
      const ids = Object.values(models).flatMap((ofClass) => Object.keys(ofClass))
      expect(reasoningModels.filter((id) => !ids.includes(id))).toEqual([])
    }
  })
})
