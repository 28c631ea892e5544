import { describe, expect, it } from '@jest/globals'
import { Metrics } from '../observability/metrics.js'
import { UnknownUpstreamWords } from './unknown-words.js'

interface Line {
  readonly fields: unknown
  readonly message: unknown
}

function setUp() {
  const lines: Line[] = []
  const metrics = new Metrics()
  const words = new UnknownUpstreamWords(metrics, {
    warn: (fields: unknown, message?: unknown) => {
      lines.push({ fields, message })
    },
  })
  const counted = async () =>
    (await metrics.collectText()).split('\n').filter((line) => line.startsWith('gateway_unknown_upstream_words_total'))
  return { words, lines, counted }
}

describe('Words of upstreams that translations do not know', () => {
  it('are in the log once each, by what they were said for', () => {
    const { words, lines } = setUp()
    for (const word of ['tired', 'tired', 'bored']) words.note('stop reason', word)
    words.note('finish reason', 'tired')
    const message = 'an upstream said a word that translations do not know'
    expect(lines).toEqual([
      { fields: { kind: 'stop reason', word: 'tired' }, message },
      { fields: { kind: 'stop reason', word: 'bored' }, message },
      { fields: { kind: 'finish reason', word: 'tired' }, message },
    ])
  })

  it('are counted each time, also those that are in the log already', async () => {
    const { words, counted } = setUp()
    words.note('event', 'news')
    words.note('event', 'news')
    words.note('stop reason', 'tired')
    expect(await counted()).toEqual([
      'gateway_unknown_upstream_words_total{kind="finish reason"} 0',
      'gateway_unknown_upstream_words_total{kind="stop reason"} 1',
      'gateway_unknown_upstream_words_total{kind="event"} 2',
    ])
  })

  it('are shown short and printable, whatever the upstream made up', () => {
    const { words, lines } = setUp()
    words.note('event', `a\nb\u202e${'c'.repeat(1_000)}`)
    words.note('event', `a\nb\u202e${'c'.repeat(2_000)}`)
    expect(lines.map(({ fields }) => fields)).toEqual([{ kind: 'event', word: `a?b?${'c'.repeat(60)}` }])
  })

  it('do not fill the log: a hundred of them are shown, and all counted', async () => {
    const { words, lines, counted } = setUp()
    for (let index = 0; index < 1_000; index++) words.note('event', `word ${index}`)
    expect(lines).toHaveLength(100)
    expect(await counted()).toContain('gateway_unknown_upstream_words_total{kind="event"} 1000')
  })
})
