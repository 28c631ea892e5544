import { describe, expect, it } from '@jest/globals'
import type { ByteSink, ByteSource } from './byte-source.js'
import type { Usage } from './request-context.js'
import { UpstreamAnswer } from './upstream-answer.js'
import { withUsageFromTail } from './usage-tail.js'

/** A body that arrives in the given pieces as soon as it is started. */
const arriving = (pieces: readonly Buffer[]): ByteSource => ({
  start: (sink) => {
    for (const piece of pieces) sink.data(piece)
    sink.end()
  },
  pause: () => undefined,
  resume: () => undefined,
  cancel: () => undefined,
})

function relay(text: string, pieceBytes: number): { passed: string; usages: Usage[] } {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let start = 0; start < bytes.length; start += pieceBytes) pieces.push(bytes.subarray(start, start + pieceBytes))
  const usages: Usage[] = []
  const passed: Buffer[] = []
  const answer = withUsageFromTail(new UpstreamAnswer(200, {}, arriving(pieces)), (usage) => usages.push(usage))
  const sink: ByteSink = { data: (chunk) => passed.push(chunk), end: () => undefined, fail: () => undefined }
  ;(answer.body as ByteSource).start(sink)
  return { passed: Buffer.concat(passed).toString(), usages }
}

const USAGE = '"usage" : {"prompt_tokens": 3, "details": {"cached_tokens": 1}}'
const FILLER = 'é'.repeat(10_000)

describe('the usage at the end of a large answer', () => {
  it.each([1, 7, 1000, 65_536])('is found in pieces of %i bytes, and every byte passes', (pieceBytes) => {
    const text = `{"choices": "${FILLER}", ${USAGE}, "service_tier": "default"}\n`
    const { passed, usages } = relay(text, pieceBytes)
    expect(passed).toBe(text)
    expect(usages).toEqual([{ units: { prompt_tokens: 3, details: { cached_tokens: 1 } }, estimated: false }])
  })

  it.each([
    ['it is missing', `{"choices": "${FILLER}"}`],
    ['it is null', `{"choices": "${FILLER}", "usage": null}`],
    ['a model only speaks of it', `{"choices": "${FILLER} \\"usage\\": {\\"prompt_tokens\\": 3}"}`],
    ['it is broken off', `{"choices": "${FILLER}", "usage": {"prompt_tokens": 3`],
    ['it stands far before the end', `{${USAGE}, "choices": "${FILLER}"}`],
  ])('is not invented when %s', (_name, text) => {
    expect(relay(text, 1000)).toEqual({ passed: text, usages: [] })
  })
})
