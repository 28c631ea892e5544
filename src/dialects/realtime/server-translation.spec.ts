import { describe, expect, it } from '@jest/globals'
import { ROWS, spelled } from '../../../test/support/realtime-server-events.js'
import { ClientDialect } from './client-dialect.js'
import type { RealtimeDialect } from './dialect.js'
import { RealtimeTranslator } from './translator.js'

function expectShown(
  text: string,
  client: RealtimeDialect,
  upstream: RealtimeDialect,
  expected: readonly string[],
): void {
  const frame = Buffer.from(text)
  const frames = new RealtimeTranslator({ client: ClientDialect.of(client), upstream }).toClient(frame)
  expect(frames.map(spelled)).toEqual(expected.map(spelled))
  if (expected.length === 1 && expected[0] === text) expect(frames[0]).toBe(frame)
}

const ofGa = ROWS.flatMap(({ name, beta, ga, toBeta }) =>
  ga === undefined ? [] : [{ name, text: ga, expected: toBeta ?? [beta ?? ga] }],
)
const ofBeta = ROWS.flatMap(({ name, beta, ga, toGa }) =>
  beta === undefined ? [] : [{ name, text: beta, expected: toGa ?? [ga ?? beta] }],
)

describe('A beta client', () => {
  it.each(ofGa)('of a GA upstream is shown $name in beta', ({ text, expected }) => {
    expectShown(text, 'beta', 'ga', expected)
  })

  it.each(ofBeta)('of a beta upstream is shown the very same frame: $name', ({ text }) => {
    expectShown(text, 'beta', 'beta', [text])
  })
})

describe('A GA client', () => {
  it.each(ofBeta)('of a beta upstream is shown $name in GA', ({ text, expected }) => {
    expectShown(text, 'ga', 'beta', expected)
  })

  it.each(ofGa)('of a GA upstream is shown the very same frame: $name', ({ text }) => {
    expectShown(text, 'ga', 'ga', [text])
  })
})
