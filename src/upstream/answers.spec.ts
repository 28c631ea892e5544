import { describe, expect, it, jest } from '@jest/globals'
import type { ByteSource } from '../core/byte-source.js'
import type { Usage } from '../core/request-context.js'
import { HeaderAllowList } from './header-names.js'
import type { UpstreamResponse } from './upstream-exchange.js'
import { meteredAnswer } from './upstream-response.js'

const ALLOWED = new HeaderAllowList()
const COUNTS = '{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}'
const USAGE = { units: { prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } }, estimated: false }

/** A body that was there with its head. */
const wholeBody = (text: string): ByteSource => ({
  complete: Buffer.from(text),
  start: () => undefined,
  pause: () => undefined,
  resume: () => undefined,
  cancel: () => undefined,
})

/** How it is known where the body ends; without either it is where the connection ends. */
const FRAMINGS = { length: { 'content-length': '1' }, chunks: { 'transfer-encoding': 'chunked' }, connection: {} }
type Framing = keyof typeof FRAMINGS

const responseOf = (text: string, framing: Framing): UpstreamResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json', ...FRAMINGS[framing] },
  body: wholeBody(text),
})

/** What is relayed of an answer, and the usage that was found in it. */
async function metered(text: string, framing: Framing = 'length'): Promise<{ body: string; usages: Usage[] }> {
  const usages: Usage[] = []
  const { body } = await meteredAnswer(responseOf(text, framing), ALLOWED, (usage) => usages.push(usage))
  return { body: Buffer.isBuffer(body) ? body.toString() : 'held back', usages }
}

describe('The usage of an answer', () => {
  it.each([
    ['at its end', `{"choices":[{"text":"hello"}],"usage":${COUNTS}}`],
    ['with something behind it', `{"choices":[],"usage":${COUNTS},"service_tier":"default","x":{"y":[1]}}`],
    ['with blanks wherever they may stand', ` \r\n\t{ \n "id" : 1 , "usage" :\n ${COUNTS} }\n`],
    ['as its only member', `{"usage":${COUNTS}}`],
    ['at its beginning', `{"usage":${COUNTS},"choices":[{"text":"the \\"usage\\": none"}]}`],
    ['though something within it is called the same', `{"usage":${COUNTS},"x":{"usage":{"prompt_tokens":9}}}`],
    ['though a text ends with its name', `{"usage":${COUNTS},"text":"of \\"usage"}`],
    ['though a text is its name', `{"usage":${COUNTS},"text":"usage"}`],
    ['though another name ends with it', `{"usage":${COUNTS},"of \\"usage":{"prompt_tokens":9}}`],
    ['though it is there twice, where the last one counts', `{"usage":{"prompt_tokens":9},"usage":${COUNTS}}`],
  ])('is found %s', async (_where, text) => {
    for (const framing of ['length', 'chunks', 'connection'] as const) {
      expect(await metered(text, framing)).toEqual({ body: text, usages: [USAGE] })
    }
  })

  it.each([
    ['there is none', '{"choices":[]}'],
    ['it is null', '{"choices":[],"usage":null}'],
    ['it holds no counts', '{"choices":[],"usage":{"a":"b"}}'],
    ['only something within the answer has one', `{"choices":[{"usage":${COUNTS}}]}`],
    ['a model only speaks of it', '{"text":"\\"usage\\":{\\"prompt_tokens\\":3}"}'],
    ['the answer has no members', '{}'],
  ])('is not invented where %s', async (_why, text) => {
    expect(await metered(text)).toEqual({ body: text, usages: [] })
  })

  it('costs no look at what stands before it', async () => {
    const parse = jest.spyOn(JSON, 'parse')
    await metered(`{"audio":"${'A'.repeat(500_000)}","usage":${COUNTS}}`)
    expect(parse.mock.calls.map(([text]) => text.length)).toEqual([`{"usage":${COUNTS}}`.length])
    parse.mockRestore()
  })
})

describe('An answer is broken', () => {
  it.each([
    ['when more follows', `{"choices":[],"usage":${COUNTS}}}`],
    ['when it is two', `{"a":1}{"usage":${COUNTS}}`],
    ['when a part of it is gone', `{"a":[1],{"usage":${COUNTS}}`],
    ['when its beginning is gone', `hoices":[],"usage":${COUNTS}}`],
    ['when it is a list', `[{"usage":${COUNTS}}]`],
    ['when it is a text', '"usage"'],
    ['when it is a page', '<html>"usage"</html>'],
    ['when it is nothing', ''],
  ])('%s', async (_when, text) => {
    for (const framing of ['length', 'connection'] as const) {
      await expect(metered(text, framing)).rejects.toMatchObject({ kind: 'upstream_failed' })
    }
  })

  it.each([
    ['within the usage', `{"choices":[],"usage":{"prompt_tokens":3`],
    ['where something within it ends', `{"choices":[{"message":{"text":"x"}`],
    ['behind the usage', `{"choices":[],"usage":${COUNTS}`],
    ['behind the usage of something within it', `{"choices":[{"index":0,"usage":${COUNTS}}`],
  ])('when its connection ends %s', async (_where, text) => {
    await expect(metered(text, 'connection')).rejects.toMatchObject({ kind: 'upstream_failed' })
  })
})
