import { afterEach, describe, expect, it } from '@jest/globals'
import { OPEN_MODEL_ROW } from '@multi-model-gateway/sandbox/sandbox.js'
import { shareLab } from '../support/lab-lifetime.js'
import { ANTHROPIC_CLIENTS } from '../support/m1-gateway.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'
import {
  type Agent,
  callsOf,
  chatAgent,
  type Manner,
  messagesAgent,
  responsesAgent,
} from '../support/translated-agents.js'
import { MESSAGES_MODEL, startTranslationLab, type TranslationLab } from '../support/translation-gateway.js'

/** It thinks without showing it, and takes marks for its cache. */
const CACHING_MODEL = 'gpt-5.6'
const OPEN_MODEL = OPEN_MODEL_ROW.id
/** It decides itself whether it thinks. */
const ADAPTIVE_MODEL = 'claude-opus-4-6'
const ROUNDS = 10
let lab: TranslationLab
shareLab(async () => {
  const caching = { id: CACHING_MODEL, class: 'chat', providers: ['p1'], dialects: ['chat'] }
  return (lab = await startTranslationLab({ models: [OPEN_MODEL_ROW, caching] }))
})

interface Cell {
  readonly name: string
  /** `words`: of the simulator, in each task. */
  readonly begin: (words?: string) => Agent
  readonly dialects: string
  readonly manner: Omit<Manner, 'gateway'>
}

const ANY = [true, false]

/** An agent of each library: the older ones as clients that keep what they got. */
const cellsOf = <Make>(
  dialects: string,
  agentFor: (make: Make, manner: Manner) => Agent,
  clients: readonly (readonly [name: string, make: Make])[],
  model: string,
  keeping = ANY,
): Cell[] =>
  clients.flatMap(([library, make], age) =>
    keeping
      .filter((keeps) => keeps || age === 0)
      .flatMap((keeps) =>
        ANY.map((isStreamed): Cell => {
          const manner = { model, keeps, isStreamed }
          const client = `a client that ${keeps ? 'keeps all' : 'drops what it does not know'}`
          const name = `${dialects}, ${model}, ${isStreamed ? 'streamed' : 'whole'}, ${library}, ${client}`
          const begin: Cell['begin'] = (words) =>
            agentFor(make, { ...manner, gateway: lab.gateway, ...(words === undefined ? {} : { words }) })
          return { name, begin, dialects, manner }
        }),
      ),
  )

const ADAPTIVE_CELLS: readonly Cell[] = [
  ...cellsOf('chat over messages', chatAgent, OPENAI_CLIENTS, ADAPTIVE_MODEL),
  ...cellsOf('responses over messages', responsesAgent, OPENAI_CLIENTS, ADAPTIVE_MODEL),
]

const CELLS: readonly Cell[] = [
  ...cellsOf('chat', chatAgent, OPENAI_CLIENTS, OPEN_MODEL),
  // Where its own dialect is spoken, the upstream wants back what it thought.
  ...cellsOf('messages', messagesAgent, ANTHROPIC_CLIENTS, MESSAGES_MODEL, [true]),
  ...cellsOf('chat over messages', chatAgent, OPENAI_CLIENTS, MESSAGES_MODEL),
  ...cellsOf('messages over chat', messagesAgent, ANTHROPIC_CLIENTS, OPEN_MODEL),
  ...cellsOf('messages over chat', messagesAgent, ANTHROPIC_CLIENTS, CACHING_MODEL),
  ...cellsOf('responses over messages', responsesAgent, OPENAI_CLIENTS, MESSAGES_MODEL),
  ...cellsOf('responses over chat', responsesAgent, OPENAI_CLIENTS, OPEN_MODEL),
  ...cellsOf('responses over chat', responsesAgent, OPENAI_CLIENTS, CACHING_MODEL),
]

afterEach(() => {
  const found = [...lab.p1.violations, ...lab.m1.violations]
  // Most upstreams let them pass, and think worse.
  const withoutThoughts = lab.m1.requests.filter(({ callsWithoutThoughts }) => callsWithoutThoughts > 0)
  for (const upstream of [lab.p1, lab.m1]) upstream.reset()
  expect(found).toEqual([])
  expect(withoutThoughts).toHaveLength(0)
})

describe('An agent of twenty turns', () => {
  /** Of the last request. */
  const sent = (upstream: 'p1' | 'm1'): string => lab[upstream].lastRequest?.body.toString() ?? ''

  it.each(CELLS)('is refused by no upstream, and sees it think each time: $name', async ({ begin, manner }) => {
    const agent = begin()
    const thoughts = manner.model === CACHING_MODEL ? /^$/ : /./
    for (let round = 0; round < ROUNDS; round++) {
      const asked = await agent.ask(round)
      expect(asked).toMatchObject({ calls: callsOf(round), thoughts: expect.stringMatching(thoughts) })
      const answer = await agent.answer(round)
      expect(answer).toMatchObject({ calls: 0, thoughts: expect.stringMatching(thoughts) })
      expect(answer.text).toMatch(/^The tools answered: /)
    }
  })

  const over = (dialects: RegExp, model: string): readonly Cell[] =>
    CELLS.filter((cell) => dialects.test(cell.dialects) && cell.manner.model === model)

  it.each(over(/over chat/, OPEN_MODEL).filter(({ manner }) => manner.keeps))(
    'gives a chat upstream back what it thought in this turn alone: $name',
    async ({ begin }) => {
      const agent = begin()
      for (const round of [0, 1]) {
        await agent.ask(round)
        expect(sent('p1')).not.toContain('"reasoning_content"')
        await agent.answer(round)
        expect(sent('p1').split('"reasoning_content":"The user says: ')).toHaveLength(2)
      }
    },
  )

  it.each(over(/over chat/, CACHING_MODEL))(
    'marks for a chat upstream what it is to cache: $name',
    async ({ begin }) => {
      await begin().ask(0)
      expect(sent('p1')).toContain('"prompt_cache_breakpoint":{"mode":"explicit"}')
    },
  )

  it.each(over(/chat over messages/, MESSAGES_MODEL))(
    'marks for a messages upstream what it is to cache, and hands pictures and errors on: $name',
    async ({ begin }) => {
      const agent = begin()
      await agent.ask(3)
      expect(sent('m1')).toContain('"cache_control":{"type":"ephemeral"}')
      await agent.answer(3)
      expect(sent('m1')).toContain('"type":"image"')
      expect(sent('m1')).toContain('Error: It failed')
    },
  )
})

describe('An agent whose model calls tools in several turns in a row', () => {
  const thinking = [...CELLS.filter(({ manner }) => manner.model === MESSAGES_MODEL), ...ADAPTIVE_CELLS]
  const cells = thinking.flatMap((cell) =>
    ['#steps=2', '#steps=3', '#steps=2 #redact', '#steps=3 #redact'].map((words) => ({
      ...cell,
      steps: Number(/\d/.exec(words)?.[0]),
      words,
    })),
  )

  it.each(cells)('is refused by no upstream, and sees it think each time: $words, $name', async (cell) => {
    const agent = cell.begin(cell.words)
    for (const round of [0, 3, 1]) {
      const turns = [await agent.ask(round)]
      while (turns.length <= cell.steps) turns.push(await agent.answer(round))
      const calling = Array.from({ length: cell.steps }, () => callsOf(round))
      expect(turns.map(({ calls }) => calls)).toEqual([...calling, 0])
      expect(turns.filter(({ thoughts }) => thoughts === '')).toEqual([])
      const body = lab.m1.lastRequest?.body.toString() ?? ''
      expect(body.includes('"redacted_thinking"')).toBe(cell.words.includes('#redact'))
    }
  })

  it.each(thinking)('lets it think where it skipped that in steps before: $name', async (cell) => {
    const agent = cell.begin('#steps=3 #skip')
    for (const round of [0, 3, 1]) {
      const turns = [await agent.ask(round)]
      while (turns.length <= 3) turns.push(await agent.answer(round))
      expect(turns.map(({ calls }) => calls)).toEqual([callsOf(round), callsOf(round), callsOf(round), 0])
      expect(turns.map(({ thoughts }) => thoughts !== '')).toEqual([true, false, false, false])
      const type = cell.manner.model === ADAPTIVE_MODEL ? 'adaptive' : 'enabled'
      expect(lab.m1.lastRequest?.json()).toMatchObject({ thinking: { type } })
    }
  })
})
