import { describe, expect, it } from '@jest/globals'
import { Verdicts } from './verdicts.js'

const PAIR = { client: 'chat', upstream: 'messages' } as const
const lenient = (): Verdicts => new Verdicts(PAIR, false)

describe('The verdicts on a translated request', () => {
  it('name the dialects, and the fields that did not travel as they came, each once', () => {
    const verdicts = lenient()
    verdicts.drop('seed')
    verdicts.drop('messages[0].name')
    verdicts.drop('seed')
    verdicts.approximate('reasoning_effort')
    expect(verdicts).toMatchObject({
      dialects: 'chat over messages',
      approximated: 'reasoning_effort',
      dropped: 'seed,messages[0].name',
    })
  })

  it('say nothing of a request that travelled whole', () => {
    expect(lenient()).toMatchObject({ approximated: undefined, dropped: undefined })
  })

  it('fit into a header, whatever a field is called and however many there are', () => {
    const verdicts = lenient()
    verdicts.drop('naïve,\n ☃')
    for (let index = 0; index < 100; index++) verdicts.drop(`messages[${index}].name`)
    expect(verdicts.dropped).toMatch(/^na\?ve\?\?\?\?,messages\[0\]\.name,/)
    expect(verdicts.dropped).toHaveLength(512)
    expect(verdicts.dropped).toMatch(/,\.\.\.$/)
  })

  it('refuse what would change the answer, naming the field and a way out', () => {
    const refuse = (): void => {
      lenient().refuse('n', 'Send one request for each choice.')
    }
    expect(refuse).toThrow(
      expect.objectContaining({
        kind: 'invalid_request',
        details: { param: 'n', code: 'unsupported_value' },
        message: expect.stringMatching(/'n'.*messages dialect.*Send one request for each choice\.$/),
      }),
    )
  })

  it.each(['approximate', 'drop'] as const)('refuse a strict caller what others have %sd', (verdict) => {
    const strict = new Verdicts(PAIR, true)
    expect(() => {
      strict[verdict]('seed')
    }).toThrow(expect.objectContaining({ details: { param: 'seed', code: 'unsupported_value' } }))
  })

  it('name a strict caller what to send instead of a field that is absent, and to leave out one that is not', () => {
    const strict = new Verdicts(PAIR, true)
    const lenientWay = ', or send the request without x-gateway-translation: strict.'
    expect(() => {
      strict.approximate('max_completion_tokens', 'Send max_completion_tokens')
    }).toThrow(`only approximately. Send max_completion_tokens${lenientWay}`)
    expect(() => {
      strict.approximate('seed')
    }).toThrow(`only approximately. Leave it out${lenientWay}`)
  })
})
