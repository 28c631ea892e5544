import { describe, expect, it } from '@jest/globals'
import { newCall } from '../../test/support/raw-upstream.js'
import { channelEntry, routingOf, type TestRouting } from '../../test/support/routing.js'
import type { ModelCapability } from '../config/model-classes.js'
import type { Caller } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { AttemptContext } from '../providers/contract.js'
import type { PinnedRoute } from './router.js'

const CALLER: Caller = { keyId: 'test' }
const STRANGER: Caller = { keyId: 'caller', bearer: 'own-bearer' }
const ALL = {
  channels: [
    channelEntry('p1'),
    channelEntry('p4', { provider: 'p4' }),
    channelEntry('m1', { provider: 'm1' }),
    channelEntry('vidgen', { provider: 'vidgen' }),
    channelEntry('imggen', { provider: 'imggen' }),
  ],
}

/** The context of the attempt on the first channel. */
async function contextOf({ router }: TestRouting, model: string, caller = CALLER): Promise<AttemptContext> {
  const call = newCall()
  call.caller = caller
  return await router
    .route('chat', model, caller)
    .attempt(call, { canRetryAfterSend: true }, (_provider, context) => Promise.resolve(context))
}

const refusal = (kind: string, message?: string) =>
  expect.objectContaining({ kind, ...(message === undefined ? {} : { message: expect.stringContaining(message) }) })

describe('The class of a model', () => {
  it.each<[ModelCapability, string, string]>([
    ['speech', 'tts-1', 'tts'],
    ['speech', 'gpt-4o-mini-tts', 'tts-style'],
    ['transcription', 'whisper-1', 'stt-standard'],
    ['transcription', 'gpt-4o-transcribe', 'stt-generation'],
    ['transcription', 'gpt-4o-transcribe-diarize', 'stt-diarize'],
    ['translation', 'whisper-1', 'stt-standard'],
    ['chat', 'gpt-4o-mini', 'chat'],
    ['chat', 'gpt-audio', 'chat-audio'],
    ['messages', 'claude-sonnet-4-5', 'messages'],
    ['video', 'vidgen-v1-6', 'video'],
    ['video', 'vidgen-v3', 'video'],
  ])('lets %s be served by %s', (capability, model, modelClass) => {
    expect(routingOf(ALL).router.route(capability, model, CALLER).modelClass).toBe(modelClass)
  })

  it.each<[ModelCapability, string]>([
    ['chat', 'tts-1'],
    ['speech', 'gpt-4o-mini'],
    ['translation', 'gpt-4o-transcribe'],
    ['messages', 'gpt-4o-mini'],
    ['chat', 'claude-sonnet-4-5'],
    ['chat', 'gpt-realtime'],
    ['chat', 'vidgen-v1-6'],
    ['video', 'gpt-4o-mini'],
    ['video', 'tts-1'],
  ])('does not let %s be served by %s', (capability, model) => {
    expect(() => routingOf(ALL).router.route(capability, model, CALLER)).toThrow(
      refusal('unknown_model', 'does not serve'),
    )
  })

  it('is what the operator’s row says, over the built-in one', () => {
    const row = { id: 'tts-1', class: 'chat', providers: ['p1'] }
    const { router } = routingOf({
      ...ALL,
      models: [row, { id: 'my-whisper', class: 'stt-standard', providers: ['p4'] }],
    })
    expect(router.route('chat', 'tts-1', CALLER).modelClass).toBe('chat')
    expect(() => router.route('speech', 'tts-1', CALLER)).toThrow(refusal('unknown_model'))
    expect(router.route('translation', 'my-whisper', CALLER).modelClass).toBe('stt-standard')
  })
})

describe('A model that no row names', () => {
  it.each(['nobody-knows', 'constructor', '__proto__', '', 'GPT-4O-MINI', 'x'.repeat(100_000)])(
    'is unknown, and its name in the message is short: %.20s',
    (model) => {
      expect(() => routingOf(ALL).router.route('chat', model, CALLER)).toThrow(
        refusal('unknown_model', 'does not exist'),
      )
      expect(() => routingOf(ALL).router.route('chat', model, CALLER)).toThrow(/^.{0,400}$/)
    },
  )

  it('is chat where a glob of a channel names it, and the one thing the channel can where it can nothing else', () => {
    const { router } = routingOf({
      channels: [
        channelEntry('a', { models: ['llama-*', 'constructor'] }),
        channelEntry('m', { provider: 'm1', models: ['sonnet-*'] }),
        channelEntry('s', { provider: 'p2', credentials: 'a|b', models: ['voice-*'] }),
        channelEntry('t', { provider: 'p4', models: ['listen-*'] }),
        channelEntry('v', { provider: 'vidgen', models: ['film-*'] }),
      ],
    })
    expect(router.route('speech', 'voice-1', CALLER).modelClass).toBe('tts')
    expect(router.route('transcription', 'listen-1', CALLER).modelClass).toBe('stt-standard')
    expect(router.route('translation', 'listen-1', CALLER).modelClass).toBe('stt-standard')
    expect(router.route('chat', 'llama-3', CALLER).modelClass).toBe('chat')
    expect(router.route('chat', 'constructor', CALLER).modelClass).toBe('chat')
    expect(router.route('messages', 'sonnet-x', CALLER).modelClass).toBe('messages')
    expect(router.route('video', 'film-9', CALLER).modelClass).toBe('video')
    expect(() => router.route('chat', 'gpt-4o-mini', CALLER)).toThrow(refusal('unknown_model'))
  })
})

describe('The refusal of a model that is not served', () => {
  const messageOf = (model: string, caller: Caller = CALLER, capability: ModelCapability = 'chat'): string => {
    try {
      routingOf({
        channels: [...ALL.channels, channelEntry('own', { models: ['house-model', 'llama-*'] })],
      }).router.route(capability, model, caller)
    } catch (error) {
      return error instanceof GatewayError ? error.message : String(error)
    }
    return 'served'
  }

  it.each<[ModelCapability, string, string]>([
    ['chat', 'gpt-9-turbo', 'gpt-4-turbo'],
    ['messages', 'claude-opus-9', 'claude-opus-5'],
    ['chat', 'hause-model', 'house-model'],
    ['transcription', 'wisper-1', 'whisper-1'],
    ['chat', 'gpt-audio-1,5', 'gpt-audio-1.5'],
  ])('for %s as %s says that %s may be meant', (capability, model, meant) => {
    expect(messageOf(model, CALLER, capability)).toContain(`Did you mean '${meant}'?`)
  })

  it('names the list and the settings', () => {
    expect(messageOf('nobody-knows')).toBe(
      "The model 'nobody-knows' does not exist or is not served here. GET /v1/models lists the models that are served. " +
        'The operator serves others by channels[].models (a name, or a glob such as gpt-*) or a row in models of the configuration.',
    )
    expect(messageOf('tts-1')).toMatch(/^The model 'tts-1' does not serve chat requests\./)
  })

  it('does not tell of models that the key may not use, or of another use', () => {
    expect(messageOf('claude-opus-9')).not.toContain('Did you mean')
    expect(messageOf('gpt-4o-mino', { keyId: 'limited', models: ['gpt-4o-min*'] })).toContain("mean 'gpt-4o-mini'?")
    const limited = { keyId: 'limited', models: ['hause-*', 'gpt-4o'] }
    expect(messageOf('hause-model', limited)).not.toContain('house')
    expect(messageOf('llama-9')).toBe('served')
  })

  it('is safe to show and no longer than messages are, whatever was asked for', () => {
    for (const model of [`<b>'&\u0007${'x'.repeat(40)}`, 'y'.repeat(100_000)]) {
      expect(messageOf(model)).toMatch(/^[^<&\p{Cc}]{1,512}$/u)
    }
  })
})

describe('A key', () => {
  it('is held to its globs before anything is said about the model', () => {
    const { router } = routingOf(ALL)
    const limited = { keyId: 'limited', models: ['gpt-4o-*'] }
    expect(router.route('chat', 'gpt-4o-mini', limited).modelClass).toBe('chat')
    for (const model of ['gpt-4.1', 'nobody-knows']) {
      expect(() => router.route('chat', model, limited)).toThrow(refusal('forbidden_model'))
    }
    expect(() => router.route('chat', 'gpt-4o-nobody', limited)).toThrow(refusal('unknown_model'))
  })

  it('of the gateway reaches only channels with a secret of their own, a stranger’s only those that pass it on', async () => {
    const routing = routingOf({ channels: [channelEntry('own'), channelEntry('passing', { credentials: 'caller' })] })
    const own = { channelId: 'own', credentials: 'secret-of-own', callersKey: false }
    const passed = { channelId: 'passing', credentials: 'own-bearer', callersKey: true }
    for (let draw = 0; draw < 20; draw++) {
      expect(await contextOf(routing, 'gpt-4o-mini')).toMatchObject(own)
      expect(await contextOf(routing, 'gpt-4o-mini', STRANGER)).toMatchObject(passed)
    }
  })

  it('is refused where only channels of the other sort serve the model', () => {
    const own = routingOf({ channels: [channelEntry('own')] })
    const passing = routingOf({ channels: [channelEntry('passing', { credentials: 'caller' })] })
    expect(() => own.router.route('chat', 'gpt-4o-mini', STRANGER)).toThrow(refusal('unauthorized'))
    expect(() => own.router.route('chat', 'nobody-knows', STRANGER)).toThrow(refusal('unauthorized'))
    expect(() => passing.router.route('chat', 'gpt-4o-mini', CALLER)).toThrow(refusal('unauthorized'))
    expect(() => passing.router.route('chat', 'nobody-knows', CALLER)).toThrow(refusal('unknown_model'))
  })
})

describe('A model that a channel names in full', () => {
  const p2 = (changes: object) => channelEntry('p2', { provider: 'p2', credentials: 'a|b', ...changes })

  it('is served there although its row names other providers, by the upstream’s own name for it', async () => {
    const { router } = routingOf({
      channels: [channelEntry('p1', { priority: 1 }), p2({ models: ['tts-1'], modelMap: { 'tts-1': 'preset' } })],
    })
    const route = router.route('speech', 'tts-1', CALLER)
    const context = await route.attempt(newCall(), { canRetryAfterSend: true }, (_provider, one) =>
      Promise.resolve(one),
    )
    expect(context).toMatchObject({ channelId: 'p2', upstreamModel: 'preset' })
    expect(route.modelClass).toBe('tts')
    expect(router.models(CALLER).find(({ id }) => id === 'tts-1')?.providers).toEqual(['p1', 'p2'])
    expect(router.models(CALLER).find(({ id }) => id === 'tts-1-hd')?.providers).toEqual(['p1'])
  })

  it('keeps its class, so that a channel is not asked for what it cannot do', () => {
    const { router } = routingOf({ channels: [p2({ models: ['gpt-4o-mini', 'gpt-4o-mini-tts'] })] })
    expect(router.route('speech', 'gpt-4o-mini-tts', CALLER).modelClass).toBe('tts-style')
    for (const capability of ['chat', 'speech'] as const) {
      expect(() => router.route(capability, 'gpt-4o-mini', CALLER)).toThrow(refusal('unknown_model'))
    }
  })

  it.each([['*'], ['tts-*'], ['tts-1*']])('is another thing than one that a glob only matches: %s', (glob) => {
    const { router } = routingOf({ channels: [p2({ models: [glob] })] })
    expect(() => router.route('speech', 'tts-1', CALLER)).toThrow(refusal('unknown_model'))
    expect(router.models(CALLER)).toEqual([])
  })
})

describe('A model on the channel that keeps what its request refers to', () => {
  const { router } = routingOf({
    channels: [
      channelEntry('first', { models: ['gpt-5-mini'] }),
      channelEntry('second', { models: ['gpt-5', 'gpt-5-mini'], priority: 1 }),
    ],
  })
  const channelOf = (channelId?: string, caller = CALLER): Promise<AttemptContext> =>
    router
      .route('responses', 'gpt-5-mini', caller, channelId)
      .attempt(newCall(), { canRetryAfterSend: true }, (_provider, context) => Promise.resolve(context))

  it('is asked for there, and anywhere where it refers to nothing', async () => {
    expect(await channelOf('second')).toMatchObject({ channelId: 'second' })
    expect(await channelOf()).toMatchObject({ channelId: 'first' })
  })

  it('goes to no other channel, however that one fails', async () => {
    const asked: string[] = []
    const route = router.route('responses', 'gpt-5-mini', CALLER, 'second')
    const attempt = route.attempt(newCall(), { canRetryAfterSend: true }, (_provider, { channelId }) => {
      asked.push(channelId)
      return Promise.reject(
        new GatewayError('upstream_failed', 'x', { attempt: { phase: 'unsent', channelError: true } }),
      )
    })
    await expect(attempt).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(asked).toEqual(['second'])
  })

  it.each([
    ['first', 'gpt-5'],
    ['gone', 'gpt-5-mini'],
  ])('is refused where that does not serve it: %s, %s', (channelId, model) => {
    const words = 'is not served by the channel that keeps what the request refers to'
    expect(() => router.route('responses', model, CALLER, channelId)).toThrow(refusal('invalid_request', words))
    expect(() => router.route('responses', 'unknown', CALLER, channelId)).toThrow(refusal('unknown_model'))
  })
})

describe('The map of a channel', () => {
  it('renames models for the upstream, and nothing else', async () => {
    const routing = routingOf({
      channels: [channelEntry('a', { models: ['*'], modelMap: { 'gpt-4o-mini': 'deployment-7' } })],
    })
    expect((await contextOf(routing, 'gpt-4o-mini')).upstreamModel).toBe('deployment-7')
    for (const model of ['constructor', 'toString', 'hasOwnProperty']) {
      expect((await contextOf(routing, model)).upstreamModel).toBe(model)
    }
  })
})

describe('The list of models', () => {
  it('holds what the key may use and some channel serves, by id, each once', () => {
    const { router } = routingOf(ALL)
    const ids = router.models(CALLER).map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)].sort())
    expect(ids).toEqual(
      expect.arrayContaining(['tts-1', 'whisper-1', 'whisper-large-v3', 'claude-opus-5', 'gpt-audio', 'gpt-realtime']),
    )
    expect(ids).toEqual(expect.arrayContaining(['vidgen-v1', 'vidgen-v1-6', 'vidgen-v3']))
    // No channel leads to the provider that serves it.
    expect(ids).not.toContain('speech-02-hd')
    expect(router.models(CALLER).find(({ id }) => id === 'whisper-1')?.providers).toEqual(['p1', 'p4'])
    const listed = new Map(router.models(CALLER).map((model) => [model.id, model]))
    expect(listed.get('claude-sonnet-4-6')).toMatchObject({ class: 'messages', createdAt: '2026-02-17' })
    expect(listed.get('gpt-6.2-sol')).not.toHaveProperty('createdAt')
    expect(router.models({ keyId: 'limited', models: ['whisper-*'] }).map(({ id }) => id)).toEqual([
      'whisper-1',
      'whisper-large-v3',
      'whisper-large-v3-turbo',
    ])
    expect(router.models(STRANGER)).toEqual([])
  })

  it('holds models that only a channel names, when it names them in full', () => {
    const { router } = routingOf({ channels: [channelEntry('a', { models: ['llama-3', 'mistral-*'] })] })
    expect(router.models(CALLER)).toEqual([
      { id: 'llama-3', class: 'chat', capabilities: ['chat', 'responses'], providers: ['p1'], offer: {} },
    ])
    const row = { id: 'llama-3', class: 'chat', providers: ['p1'], createdAt: '2024-04-18' } as const
    const dated = routingOf({ channels: [channelEntry('a', { models: ['llama-3'] })], models: [row] })
    expect(dated.router.models(CALLER)).toEqual([{ ...row, capabilities: ['chat', 'responses'], offer: {} }])
  })

  it('shows the voices that the options of a channel add to those of its provider', () => {
    const options = { voices: { narrator: 'zh_female_tianmei_mars_bigtts' } }
    const speech = { provider: 'p2', credentials: 'app|token', models: ['house-voice'], options }
    const channels = [channelEntry('a', speech)]
    const [model] = routingOf({ channels }).router.models(CALLER)
    expect(model?.offer.voices).toEqual(['alloy', 'echo', 'fable', 'onyx', 'nova', 'shimmer', 'narrator'])
  })
})

describe('A reload', () => {
  it('swaps channels and models at once; a call that was routed before goes on where it was', async () => {
    const routing = routingOf({ channels: [channelEntry('old')] }, { channels: [channelEntry('new')] })
    const before = routing.router.route('chat', 'gpt-4o-mini', CALLER)
    await routing.store.reload()
    expect((await contextOf(routing, 'gpt-4o-mini')).channelId).toBe('new')
    const context = await before.attempt(newCall(), { canRetryAfterSend: true }, (_provider, one) =>
      Promise.resolve(one),
    )
    expect(context).toMatchObject({ channelId: 'old', credentials: 'secret-of-old' })
  })
})

describe('A model of video', () => {
  it('is asked for by the upstream’s own name, on another channel when the first refuses', async () => {
    const { router } = routingOf({
      channels: [
        channelEntry('first', { provider: 'vidgen', modelMap: { 'vidgen-v1-6': 'upstream-v1-6' } }),
        channelEntry('second', { provider: 'vidgen', priority: 1 }),
        channelEntry('other', { provider: 'vidgen', models: ['vidgen-v3'], priority: 2 }),
      ],
    })
    const asked: string[] = []
    const refused = new GatewayError('upstream_failed', 'No.', { attempt: { phase: 'answered', channelError: true } })
    const attempt = router
      .route('video', 'vidgen-v1-6', CALLER)
      .attempt(newCall(), { canRetryAfterSend: false }, (_provider, { channelId, upstreamModel }) => {
        asked.push(`${channelId} ${upstreamModel}`)
        return Promise.reject(refused)
      })
    await expect(attempt).rejects.toBe(refused)
    expect(asked).toEqual(['first upstream-v1-6', 'second vidgen-v1-6'])
  })

  it('is not asked for twice when it is unknown whether the first has made a task', async () => {
    const { router } = routingOf({
      channels: [channelEntry('a', { provider: 'vidgen' }), channelEntry('b', { provider: 'vidgen' })],
    })
    let attempts = 0
    const lost = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent', channelError: true } })
    const attempt = router
      .route('video', 'vidgen-v1-6', CALLER)
      .attempt(newCall(), { canRetryAfterSend: false }, () => {
        attempts++
        return Promise.reject(lost)
      })
    await expect(attempt).rejects.toBe(lost)
    expect(attempts).toBe(1)
  })
})

describe.each([
  ['video', 'vidgen', 'imggen'],
  ['image', 'imggen', 'vidgen'],
] as const)('The channels of %s tasks', (capability, provider, other) => {
  const channelsOf = ({ router }: TestRouting, caller = CALLER): readonly PinnedRoute<unknown>[] =>
    capability === 'video' ? router.videoChannels(caller) : router.imageChannels(caller)
  const idsFor = (routing: TestRouting, caller = CALLER): string[] =>
    channelsOf(routing, caller).map(({ channelId }) => channelId)
  const own = (id: string, changes: object = {}) => channelEntry(id, { provider, ...changes })

  it('are those that can, best first, whatever models they name and the key may use', () => {
    const routing = routingOf({
      channels: [
        channelEntry('p1'),
        channelEntry('other', { provider: other }),
        own('later', { priority: 1, models: ['some-model'] }),
        own('first', { options: { pathPrefix: '/x' } }),
      ],
    })
    expect(idsFor(routing)).toEqual(['first', 'later'])
    expect(idsFor(routing, { keyId: 'limited', models: ['gpt-*'] })).toEqual(['first', 'later'])
    expect(channelsOf(routing)[0]).toMatchObject({
      modelClass: capability,
      options: expect.objectContaining({ pathPrefix: '/x' }),
    })
    routing.health.open('first', 5000)
    expect(idsFor(routing)).toEqual(['later', 'first'])
  })

  it('are of the sort that takes the caller’s key, and none where there is no such channel', () => {
    const routing = routingOf({ channels: [own('own'), own('passing', { credentials: 'caller' })] })
    expect(idsFor(routing)).toEqual(['own'])
    expect(idsFor(routing, STRANGER)).toEqual(['passing'])
    expect(idsFor(routingOf({ channels: [own('own')] }), STRANGER)).toEqual([])
    expect(idsFor(routingOf({ channels: [channelEntry('p1')] }))).toEqual([])
  })

  it('are asked one by one: a failure is the channel’s and goes to no other', async () => {
    const routing = routingOf({ channels: [own('first'), own('second', { priority: 1 })] })
    const [first] = channelsOf(routing)
    const failure = new GatewayError('upstream_failed', 'No.', {
      attempt: { phase: 'answered', channelError: true },
      retryable: false,
    })
    const asked: AttemptContext[] = []
    const attempt = first?.attempt(newCall(), { canRetryAfterSend: true }, (_provider, context) => {
      asked.push(context)
      return Promise.reject(failure)
    })
    await expect(attempt).rejects.toBe(failure)
    expect(asked).toMatchObject([{ channelId: 'first', credentials: 'secret-of-first', callersKey: false }])
    expect(routing.health.stateOf('first')).toBe('open')
    expect(idsFor(routing)).toEqual(['second', 'first'])
  })

  it('stay marked while they only answer questions: a dead account does that, too', async () => {
    const routing = routingOf({ channels: [own('first')] })
    routing.health.open('first', 60_000)
    const [first] = channelsOf(routing)
    await first?.attempt(newCall(), { canRetryAfterSend: true }, () => Promise.resolve('an answer'))
    expect(routing.health.stateOf('first')).toBe('open')
  })
})

describe('A transcription session', () => {
  const transcriptionRoute = ({ router }: TestRouting, model: string | undefined, caller: Caller) =>
    model === undefined
      ? router.transcriptionWithoutModel(caller)
      : router.route('realtime_transcription', model, caller)
  const channelOf = async (routing: TestRouting, model: string | undefined, caller: Caller): Promise<string> => {
    const call = newCall()
    call.caller = caller
    const route = transcriptionRoute(routing, model, caller)
    return route.attempt(call, { canRetryAfterSend: true }, (_provider, { channelId }) => Promise.resolve(channelId))
  }
  const only = (...models: string[]): Caller => ({ keyId: 'narrow', models })
  const AUDIO = channelEntry('audio', { models: ['whisper-1', 'gpt-4o-transcribe'] })
  const VOICE = channelEntry('voice', { models: ['gpt-realtime', 'gpt-realtime-whisper'], priority: 1 })
  const CHAT = channelEntry('chat', { models: ['gpt-4.1*', 'my-own'] })
  const WHISPER = channelEntry('p4', { provider: 'p4' })

  it.each<[string, readonly object[], string | undefined, Caller, string]>([
    ['without a model, on a channel that serves conversations', [AUDIO, VOICE], undefined, CALLER, 'voice'],
    ['without such a channel, on one that serves transcription', [WHISPER, AUDIO], undefined, CALLER, 'audio'],
    ['of a narrow key, on a channel that serves its model', [AUDIO, VOICE], undefined, only('whisper-*'), 'audio'],
    ['with a model, on the channel that serves it', [AUDIO, VOICE], 'whisper-1', CALLER, 'audio'],
    ['with a model of sessions alone', [AUDIO, VOICE], 'gpt-realtime-whisper', CALLER, 'voice'],
    ['with a model of conversations', [AUDIO, VOICE], 'gpt-realtime', CALLER, 'voice'],
  ])('%s', async (_name, channels, model, caller, channel) => {
    expect(await channelOf(routingOf({ channels }), model, caller)).toBe(channel)
  })

  it.each([undefined, 'whisper-1', 'gpt-realtime'])('is of the class realtime, whatever transcribes: %s', (model) => {
    expect(transcriptionRoute(routingOf({ channels: [AUDIO, VOICE] }), model, CALLER).modelClass).toBe('realtime')
  })

  it.each<[readonly object[], string | undefined, Caller, string]>([
    [[CHAT, WHISPER], undefined, CALLER, 'unknown_model'],
    [[WHISPER], 'whisper-1', CALLER, 'unknown_model'],
    [[AUDIO], 'gpt-realtime', CALLER, 'unknown_model'],
    [[AUDIO], 'no-such', CALLER, 'unknown_model'],
    [[CHAT], 'gpt-4.1', CALLER, 'unknown_model'],
    [[AUDIO, VOICE], undefined, only('tts-*', 'gpt-4o'), 'forbidden_model'],
    [[AUDIO, VOICE], undefined, only('gpt-4o-transcribe-diarize'), 'unknown_model'],
    [[AUDIO, VOICE], 'whisper-1', only('gpt-realtime'), 'forbidden_model'],
    [[AUDIO], undefined, STRANGER, 'unauthorized'],
  ])('on %j with the model %s is refused to %j: %s', (channels, model, caller, kind) => {
    expect(() => transcriptionRoute(routingOf({ channels }), model, caller)).toThrow(refusal(kind))
  })

  it('is pointed at where its model is asked for a conversation', () => {
    const { router } = routingOf({ channels: [AUDIO] })
    expect(() => router.route('realtime', 'whisper-1', CALLER)).toThrow(
      refusal('unknown_model', 'intent=transcription'),
    )
    expect(() => router.route('realtime', 'gpt-4o', CALLER)).toThrow(/realtime requests\. GET/)
  })

  it('may name the models that its channel serves for that, mapped names too, and no others', () => {
    const mapped = channelEntry('mapped', {
      models: ['whisper-1'],
      modelMap: { ours: 'gpt-4o-transcribe', own: 'my-own-whisper', chat: 'gpt-4o' },
    })
    const { router } = routingOf({ channels: [AUDIO, VOICE, mapped] })
    const named = [
      'whisper-1',
      'gpt-realtime-whisper',
      'gpt-realtime',
      'gpt-4o',
      'ours',
      'own',
      'chat',
      'no-such-model',
    ]
    const servedBy = (id: string): unknown =>
      named.flatMap((model) => {
        const { isServed, modelClass } = router.transcriptionModel(id, model)
        return isServed ? [[model, modelClass]] : []
      })
    expect(servedBy('voice')).toEqual([['gpt-realtime-whisper', 'stt-realtime']])
    expect(servedBy('audio')).toEqual([['whisper-1', 'stt-standard']])
    expect(servedBy('mapped')).toEqual([
      ['whisper-1', 'stt-standard'],
      ['ours', 'stt-generation'],
      ['own', undefined],
    ])
    expect(servedBy('no-such-channel')).toEqual([])
  })

  it('knows what the models are that its channel does not serve, as a conversation may name them', () => {
    const { router } = routingOf({ channels: [VOICE] })
    expect(router.transcriptionModel('voice', 'whisper-1')).toEqual({ isServed: false, modelClass: 'stt-standard' })
  })

  it('has models of its own, which are listed and serve nothing else', () => {
    const { router } = routingOf({ channels: [VOICE] })
    expect(router.models(CALLER)).toContainEqual({
      id: 'gpt-realtime-whisper',
      class: 'stt-realtime',
      capabilities: ['realtime_transcription'],
      providers: ['p1'],
      offer: {},
    })
    expect(() => router.route('transcription', 'gpt-realtime-whisper', CALLER)).toThrow(refusal('unknown_model'))
  })
})
