import { describe, expect, it } from '@jest/globals'
import { attemptOf, newCall } from '../../test/support/raw-upstream.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { JsonBody } from '../core/json-body.js'
import { factsOf } from '../dialects/model-facts.js'
import { OwnerSeals } from '../dialects/translations/seals.js'
import type { AttemptContext, MessagesCall, MessagesProvider } from '../providers/contract.js'
import { TRANSLATIONS } from './translated-providers.js'

/** Answers a count so, and keeps what it was asked. */
function counter(answer = '{"input_tokens":7}'): { readonly asked: unknown[]; readonly provider: MessagesProvider } {
  const asked: unknown[] = []
  const countTokens = ({ body }: MessagesCall): Promise<ProviderResponse> => {
    asked.push(JSON.parse(body.bytes.toString()))
    return Promise.resolve(new ProviderResponse(200, {}, Buffer.from(answer)))
  }
  return { asked, provider: { countTokens } as Partial<MessagesProvider> as MessagesProvider }
}

const SETTING = {
  pair: { client: 'responses', upstream: 'messages' } as const,
  facts: factsOf(undefined),
  seals: new OwnerSeals(Buffer.from('secret'), 'owner'),
  thoughts: undefined,
  unknownWords: undefined,
  keepsResponses: false,
}

/** Asked by a strict caller. */
function countBy(messages: MessagesProvider, fields: object = {}) {
  const context = { ...attemptOf(newCall()), upstreamModel: 'theirs', isStrict: true } as AttemptContext
  const request = { model: 'mine', input: 'Hi', ...fields }
  const body = JsonBody.written(JSON.stringify(request), request)
  const translating = TRANSLATIONS.responses.find(({ over }) => over === 'messages')
  return { context, answer: translating?.provider({ messages }, SETTING)?.countInputTokens({ body }, context) }
}

describe('The tokens of a request for a response, counted by a messages upstream', () => {
  it.each([{}, { max_output_tokens: null }])(
    'are counted for a strict caller who does not limit the answer: %j',
    async (fields) => {
      const { asked, provider } = counter()
      const { context, answer } = countBy(provider, fields)
      expect((await answer)?.body).toEqual(Buffer.from('{"object":"response.input_tokens","input_tokens":7}'))
      expect(asked).toEqual([{ model: 'theirs', messages: [{ role: 'user', content: 'Hi' }] }])
      expect(context.record.translation?.approximated).toBeUndefined()
    },
  )

  it.each(['{}', '{"input_tokens":"many"}'])("are the upstream's failure where it counted none: %s", async (text) => {
    const { answer } = countBy(counter(text).provider)
    await expect(answer).rejects.toMatchObject({ kind: 'upstream_failed' })
  })
})
