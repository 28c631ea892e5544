import { describe, expect, it } from '@jest/globals'
import { Injectable, Module } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { pino } from 'pino'
import { PROVIDERS } from '../app/providers.js'
import { keyCredentials, noOptions } from '../config/channel-schema.js'
import { ConfigurationModule } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { ObservabilityModule } from '../observability/observability.module.js'
import { Readiness } from '../observability/readiness.js'
import { RequestHooks } from '../observability/request-hooks.js'
import type {
  ChatProvider,
  ProviderManifest,
  TranscriptionProvider,
  TranslationProvider,
} from '../providers/contract.js'
import { UpstreamClient } from '../upstream/upstream-client.js'
import { ProviderRegistry } from './channel-selection.js'
import { assertManifestsAgree, builtInModels } from './channel.js'
import { ProvidersModule } from './providers.module.js'
import { ProviderRouter } from './router.js'

const unused = (): Promise<never> => Promise.reject(new Error('no request is sent in these tests'))

@Injectable()
class ToyTokens {}

@Injectable()
class ToyChat implements ChatProvider {
  readonly respond = unused

  constructor(
    readonly client: UpstreamClient,
    readonly tokens: ToyTokens,
  ) {}
}

@Injectable()
class ToyTranscription implements TranscriptionProvider, TranslationProvider {
  readonly transcribe = unused
  readonly translate = unused
}

const TOY: ProviderManifest = {
  name: 'toy',
  credentialsSchema: keyCredentials,
  optionsSchema: noOptions,
  capabilities: { chat: ToyChat, transcription: ToyTranscription, translation: ToyTranscription },
  injectables: [ToyTokens],
  defaultModelClass: 'stt-standard',
  models: { chat: ['toy-1'] },
}

/** A capability's module, which imports nothing. */
@Injectable()
class ToyService {
  constructor(readonly router: ProviderRouter) {}
}

@Module({ providers: [ToyService] })
class ToyModule {}

const channel = (id: string, more: object = {}): object => ({
  id,
  provider: 'toy',
  baseUrl: 'http://127.0.0.1:1',
  credentials: 'k',
  ...more,
})

async function started(...channels: object[]) {
  const config = parseConfig(JSON.stringify({ channels }), {}, [TOY])
  const module = await Test.createTestingModule({
    imports: [
      ConfigurationModule.forRoot({ config }),
      ObservabilityModule.forRoot(new Readiness(), new RequestHooks(), pino({ level: 'silent' })),
      ProvidersModule.forManifests([TOY]),
      ToyModule,
    ],
  }).compile()
  return {
    registry: module.get(ProviderRegistry, { strict: false }),
    router: module.get(ToyService, { strict: false }).router,
  }
}

describe('The providers of the gateway', () => {
  it('are built from their manifests, each class once, with what it asks for', async () => {
    const { registry } = await started()
    const { chat, transcription, translation, ...others } = registry.find('toy')
    expect(chat).toBeInstanceOf(ToyChat)
    expect((chat as ToyChat).client).toBeInstanceOf(UpstreamClient)
    expect((chat as ToyChat).tokens).toBeInstanceOf(ToyTokens)
    expect(transcription).toBeInstanceOf(ToyTranscription)
    expect(translation).toBe(transcription)
    expect(others).toEqual({})
    expect(registry.find('p1')).toEqual({})
  })

  it('serve the models of their manifests to a module that imports nothing', async () => {
    const { router } = await started(channel('a'))
    const caller = { keyId: 'test' }
    expect(router.models(caller)).toEqual([
      { id: 'toy-1', class: 'chat', capabilities: ['chat'], providers: ['toy'], offer: {} },
    ])
    expect(router.route('chat', 'toy-1', caller).modelClass).toBe('chat')
    expect(() => router.route('chat', 'gpt-4o', caller)).toThrow('does not exist')
  })

  it('give a model without a row the class of the manifest', async () => {
    const { router } = await started(channel('a', { models: ['new-*'] }))
    const caller = { keyId: 'test' }
    expect(router.route('transcription', 'new-1', caller).modelClass).toBe('stt-standard')
    expect(() => router.route('chat', 'new-1', caller)).toThrow('does not exist')
  })

  it('are refused before anything is built when two have one name', () => {
    expect(() => ProvidersModule.forManifests([TOY, ...PROVIDERS, { ...TOY, models: {} }])).toThrow(
      'Two providers are called toy.',
    )
  })

  it('are refused before anything is built when they disagree about the class of a model', () => {
    const other: ProviderManifest = { ...TOY, name: 'other', models: { tts: ['toy-1'] } }
    expect(() => ProvidersModule.forManifests([TOY, other])).toThrow('toy-1 is chat on toy, but tts on other.')
  })

  it('do not contradict each other', () => {
    expect(() => {
      assertManifestsAgree(PROVIDERS)
    }).not.toThrow()
  })

  it('share one row for a model that several of them offer', () => {
    expect(builtInModels(PROVIDERS).filter(({ id }) => id === 'whisper-1')).toEqual([
      { id: 'whisper-1', class: 'stt-standard', providers: ['p1', 'p4'] },
    ])
  })
})
