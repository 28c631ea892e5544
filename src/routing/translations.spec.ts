import { describe, expect, it } from '@jest/globals'
import { newCall, NEVER_SENT } from '../../test/support/raw-upstream.js'
import { channelEntry, type RoutingDocument, routingOf } from '../../test/support/routing.js'
import type { WritingDialect } from '../config/model-classes.js'
import type { Caller } from '../core/caller.js'
import { type ErrorKind, GatewayError } from '../core/errors.js'
import { clientDisconnected } from '../core/request-context.js'

const CALLER: Caller = { keyId: 'test' }
const CHANNELS = [channelEntry('p1'), channelEntry('m1', { provider: 'm1' })]
const ON = { channels: CHANNELS, dialects: { translate: 'on' } }

/** The channels that are tried for a model, each with the class of what serves it; every attempt fails as the error says. */
async function triedFor(
  document: RoutingDocument,
  dialect: WritingDialect,
  model: string,
  { error = failed('unsent'), spared }: { readonly error?: GatewayError; readonly spared?: string } = {},
) {
  const tried: string[] = []
  const { router, health } = routingOf(document)
  if (spared !== undefined) for (let failure = 0; failure < 3; failure++) health.begin(spared).failed({})
  await router
    .route(dialect, model, CALLER)
    .attempt(newCall(), { canRetryAfterSend: true }, (provider, { channelId }) => {
      tried.push(`${channelId} ${provider.constructor.name}`)
      return Promise.reject(error)
    })
    .catch(() => undefined)
  return tried
}

const failed = (phase: 'unsent' | 'sent' | 'answered', kind: ErrorKind = 'upstream_failed'): GatewayError =>
  new GatewayError(kind, 'Gone.', phase === 'unsent' ? NEVER_SENT : { attempt: { phase, channelError: true } })

describe('A model behind a dialect that its upstream does not speak', () => {
  it.each([
    ['chat', 'claude-sonnet-4-5', ['m1 ChatOverMessages']],
    ['messages', 'gpt-4o-mini', ['p1 MessagesOverChat']],
    ['responses', 'claude-sonnet-4-5', ['m1 ResponsesOverMessages']],
    ['responses', 'gpt-5-mini', ['p1 Object']],
    // Natively.
    ['chat', 'gpt-4o-mini', ['p1 Object']],
    ['responses', 'gpt-4o-mini', ['p1 Object']],
    ['messages', 'claude-sonnet-4-5', ['m1 Object']],
  ] as const)('is served by translation where the operator wants it: %s of %s', async (dialect, model, expected) => {
    expect(await triedFor(ON, dialect, model)).toEqual(expected)
  })

  it.each([
    ['chat', 'claude-sonnet-4-5'],
    ['messages', 'gpt-4o-mini'],
    ['responses', 'claude-sonnet-4-5'],
  ] as const)('is unknown there by default, and the message names the switch: %s of %s', (dialect, model) => {
    expect(() => routingOf({ channels: CHANNELS }).router.route(dialect, model, CALLER)).toThrow(
      /does not serve .* requests\. The operator can have it translated by dialects\.translate/,
    )
  })

  it.each(['tts-1', 'gpt-audio'])('stays unknown where it does not write, or speaks: %s', (model) => {
    expect(() => routingOf(ON).router.route('messages', model, CALLER)).toThrow(/does not serve messages/)
  })

  it.each([
    ['never', 'on', []],
    ['always', 'off', ['m1 ChatOverMessages']],
    ['only_these', 'on', []],
    ['only_these', 'off', []],
  ])(
    'is served as its channel says, whatever the gateway does: %s, gateway %s',
    async (translate, gateway, expected) => {
      const document = {
        channels: [channelEntry('m1', { provider: 'm1', translate })],
        dialects: { translate: gateway },
      }
      expect(await triedFor(document, 'chat', 'claude-sonnet-4-5').catch(() => [])).toEqual(expected)
    },
  )

  it('is translated on a channel for listed models alone where its row says what its upstream speaks', async () => {
    const row = { id: 'qwen', class: 'chat', providers: ['p1'], dialects: ['chat'] }
    const document = { channels: [channelEntry('p1', { translate: 'only_these' })], models: [row] }
    expect(await triedFor(document, 'responses', 'qwen')).toEqual(['p1 ResponsesOverChat'])
    expect(await triedFor(document, 'messages', 'qwen')).toEqual(['p1 MessagesOverChat'])
    expect(await triedFor(document, 'messages', 'gpt-4o-mini').catch(() => [])).toEqual([])
  })

  it('is not asked in a dialect that its row leaves out, and the message names the switch', () => {
    const row = { id: 'qwen', class: 'chat', providers: ['p1'], dialects: ['chat'] }
    const { router } = routingOf({ channels: [channelEntry('p1')], models: [row] })
    expect(() => router.route('responses', 'qwen', CALLER)).toThrow(
      "The model 'qwen' does not serve responses requests. The operator can have it translated by dialects.translate",
    )
  })

  it.each([
    ['asked for chat, where its class is of responses alone', [channelEntry('p1')], 'chat', 'gpt-5-pro'],
    ['where it speaks', [channelEntry('p1')], 'messages', 'gpt-audio'],
    ['where its channel never translates', [channelEntry('p1', { translate: 'never' })], 'messages', 'gpt-4o-mini'],
    ['where it is not served at all', [channelEntry('m1', { provider: 'm1' })], 'messages', 'gpt-4o-mini'],
  ] as const)('is refused without naming a switch that would not help: %s', (_case, channels, dialect, model) => {
    const route = () => routingOf({ channels }).router.route(dialect, model, CALLER)
    expect(route).toThrow('does not serve')
    expect(route).not.toThrow('dialects.translate')
  })
})

/** Codes of what translations refuse: what the other dialect lacks, and what it cannot be made of. */
const REFUSALS = ['unsupported_value', 'invalid_type']

describe('A model that some channels serve natively', () => {
  const row = { id: 'both', class: 'chat', providers: ['p1', 'm1'] }
  const native = channelEntry('native', { priority: 1, models: ['both'] })
  const other = channelEntry('other', { provider: 'm1', models: ['both'] })
  const dialected = { ...row, dialects: ['chat', 'messages'] }
  const document = { channels: [other, native], models: [dialected], dialects: { translate: 'on' } }

  it('is translated only where none of these is left, even by a channel that comes first', async () => {
    expect(await triedFor(document, 'chat', 'both')).toEqual(['native Object', 'other ChatOverMessages'])
  })

  it('is not translated for a second attempt once the first request was sent', async () => {
    expect(await triedFor(document, 'chat', 'both', { error: failed('sent') })).toEqual(['native Object'])
  })

  it.each(['upstream_failed', 'rate_limited'] as const)(
    'is translated for a second attempt where the native channel answered that it failed: %s',
    async (kind) => {
      expect(await triedFor(document, 'chat', 'both', { error: failed('answered', kind) })).toEqual([
        'native Object',
        'other ChatOverMessages',
      ])
    },
  )

  it.each([
    ['was sent', failed('sent'), ['other ChatOverMessages']],
    ['was not sent', failed('unsent'), ['other ChatOverMessages', 'native Object']],
  ] as const)(
    'is asked natively after a translation that %s, while that channel is spared',
    async (_, error, tried) => {
      expect(await triedFor(document, 'chat', 'both', { error, spared: 'native' })).toEqual(tried)
    },
  )

  it.each(REFUSALS)(
    'fails as the native channel did where only the translation would refuse the request: %s',
    async (code) => {
      const { router } = routingOf(document)
      const errors = [failed('unsent'), new GatewayError('invalid_request', 'No.', { code })]
      const call = router
        .route('chat', 'both', CALLER)
        .attempt(newCall(), { canRetryAfterSend: true }, () => Promise.reject(errors.shift() ?? failed('unsent')))
      await expect(call).rejects.toThrow('Gone.')
    },
  )
})

describe('A model that two channels serve by translation', () => {
  const first = channelEntry('first', { provider: 'm1', models: ['both'] })
  const row = { id: 'both', class: 'chat', providers: ['p1', 'm1'] }
  const on = { translate: 'on' }

  it('is asked again on the second where the upstreams speak one dialect, though the request was sent', async () => {
    const channels = [first, channelEntry('second', { provider: 'm1', priority: 1, models: ['both'] })]
    const document = { channels, models: [{ ...row, dialects: ['messages'] }], dialects: on }
    expect(await triedFor(document, 'chat', 'both', { error: failed('sent') })).toEqual([
      'first ChatOverMessages',
      'second ChatOverMessages',
    ])
  })

  it('is asked again in the dialect of the first though a channel of another stands between them', async () => {
    const between = channelEntry('between', { priority: 1, models: ['both'] })
    const channels = [first, between, channelEntry('last', { provider: 'm1', priority: 2, models: ['both'] })]
    const document = { channels, models: [{ ...row, dialects: ['chat', 'messages'] }], dialects: on }
    expect(await triedFor(document, 'responses', 'both', { error: failed('sent') })).toEqual([
      'first ResponsesOverMessages',
      'last ResponsesOverMessages',
    ])
  })

  it.each([
    ['sent', ['first ResponsesOverMessages']],
    ['unsent', ['first ResponsesOverMessages', 'second ResponsesOverChat']],
  ] as const)('is asked in another dialect only where the request was not sent: %s', async (phase, tried) => {
    const channels = [first, channelEntry('second', { priority: 1, models: ['both'] })]
    const document = { channels, models: [{ ...row, dialects: ['chat', 'messages'] }], dialects: on }
    expect(await triedFor(document, 'responses', 'both', { error: failed(phase) })).toEqual(tried)
  })
})

describe('What the log says of translations', () => {
  const row = { id: 'both', class: 'chat', providers: ['p1', 'm1'], dialects: ['chat', 'messages'] }
  const channels = [
    channelEntry('native', { models: ['both'] }),
    channelEntry('other', { provider: 'm1', models: ['both'] }),
  ]
  const translation = { dialects: 'chat over messages', approximated: 'n', dropped: undefined }

  /** What the log says of a call whose native channel and whose translated one fail so. */
  async function logged(first: GatewayError, second: GatewayError) {
    const call = newCall()
    const { router } = routingOf({ channels, models: [row], dialects: { translate: 'on' } })
    await router
      .route('chat', 'both', CALLER)
      .attempt(call, { canRetryAfterSend: true }, (_provider, { channelId, record }) => {
        if (channelId === 'native') return Promise.reject(first)
        record.translation = translation
        return Promise.reject(second)
      })
      .catch(() => undefined)
    return call.log.translation
  }

  it('is of the channel whose error the caller gets', async () => {
    expect(await logged(failed('unsent'), failed('answered'))).toEqual(translation)
    expect(await logged(failed('answered', 'rate_limited'), failed('answered'))).toBeUndefined()
  })
})

describe('A caller who leaves while an answer is translated', () => {
  it('pays what the upstream has said that it cost', async () => {
    const { router } = routingOf({ channels: [channelEntry('m1', { provider: 'm1' })], dialects: { translate: 'on' } })
    const call = newCall()
    const usage = { reportedUsage: { units: { input_tokens: 3 }, estimated: false } }
    await router
      .route('chat', 'claude-sonnet-4-5', CALLER)
      .attempt(call, { canRetryAfterSend: true }, (_provider, { record }) => {
        record.answerUsage = usage
        return Promise.reject(clientDisconnected())
      })
      .catch(() => undefined)
    expect(call.log.usageReader).toBe(usage)
  })
})

describe('A request that a translation refuses', () => {
  const row = { id: 'both', class: 'chat', providers: ['p1', 'm1'], dialects: ['chat', 'messages'] }
  const channels = [
    channelEntry('native', { models: ['both'] }),
    channelEntry('other', { provider: 'm1', models: ['both'] }),
  ]
  const refusalOf = (code: string): GatewayError => new GatewayError('invalid_request', 'No.', { code, param: 'n' })

  it.each(REFUSALS)('goes to the channel that speaks its dialect, though that one is spared: %s', async (code) => {
    const { router, health } = routingOf({ channels, models: [row], dialects: { translate: 'on' } })
    for (let failure = 0; failure < 3; failure++) health.begin('native').failed({})
    const tried: string[] = []
    const answer = await router
      .route('chat', 'both', CALLER)
      .attempt(newCall(), { canRetryAfterSend: false }, (_provider, { channelId }) => {
        tried.push(channelId)
        return channelId === 'other' ? Promise.reject(refusalOf(code)) : Promise.resolve('answered')
      })
    expect([tried, answer]).toEqual([['other', 'native'], 'answered'])
  })

  it('goes nowhere else where it was no refusal of the translation', async () => {
    const { router, health } = routingOf({ channels, models: [row], dialects: { translate: 'on' } })
    for (let failure = 0; failure < 3; failure++) health.begin('native').failed({})
    const tried: string[] = []
    const call = router
      .route('chat', 'both', CALLER)
      .attempt(newCall(), { canRetryAfterSend: true }, (_provider, { channelId }) => {
        tried.push(channelId)
        return Promise.reject(new GatewayError('overloaded', 'Full.'))
      })
    await expect(call).rejects.toThrow('Full.')
    expect(tried).toEqual(['other'])
  })

  it('is refused where no channel speaks its dialect', async () => {
    const { router } = routingOf(ON)
    const call = router
      .route('chat', 'claude-sonnet-4-5', CALLER)
      .attempt(newCall(), { canRetryAfterSend: true }, () => Promise.reject(refusalOf('unsupported_value')))
    await expect(call).rejects.toThrow('No.')
  })
})

describe('An answer that cannot be translated', () => {
  it('was paid for, is recorded so, and is not asked for again', async () => {
    const channels = [
      channelEntry('first', { provider: 'm1', models: ['claude-*'] }),
      channelEntry('second', { provider: 'm1', priority: 1, models: ['claude-*'] }),
    ]
    const { router, health } = routingOf({ channels, dialects: { translate: 'on' } })
    const call = newCall()
    let asked = 0
    const usage = { reportedUsage: { units: { input_tokens: 3 }, estimated: false } }
    const attempt = router
      .route('chat', 'claude-x', CALLER)
      .attempt(call, { canRetryAfterSend: true }, (_provider, { record }) => {
        asked++
        record.answerUsage = usage
        return Promise.reject(new GatewayError('upstream_failed', 'Not translatable.'))
      })
    await expect(attempt).rejects.toThrow('Not translatable.')
    expect([asked, call.log.usageReader, health.stateOf('first')]).toEqual([1, usage, 'closed'])
  })
})

describe('The list of models', () => {
  it('says in which dialects a model can be asked, where some are translated', () => {
    const models = routingOf(ON).router.models(CALLER)
    const dialectsOf = (id: string) => models.find((model) => model.id === id)?.dialects
    expect(dialectsOf('claude-sonnet-4-5')).toEqual(['chat', 'messages', 'responses'])
    expect(dialectsOf('gpt-4o-mini')).toEqual(['chat', 'messages', 'responses'])
    expect(dialectsOf('tts-1')).toBeUndefined()
  })

  it('says nothing of it where nothing is translated', () => {
    const models = routingOf({ channels: CHANNELS }).router.models(CALLER)
    expect(models.filter(({ dialects }) => dialects !== undefined)).toEqual([])
  })
})
