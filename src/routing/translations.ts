import { randomBytes } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { ModelRow } from '../config/channel-schema.js'
import type { WritingDialect } from '../config/model-classes.js'
import { type Caller, ownerOf } from '../core/caller.js'
import { factsOf } from '../dialects/model-facts.js'
import { OwnerSeals } from '../dialects/translations/seals.js'
import { ThoughtMemory } from '../dialects/translations/thought-memory.js'
import type { Capability, ProviderCapabilities, RoutedProviderOf } from '../providers/contract.js'
import {
  ChatOverMessages,
  MessagesOverChat,
  ResponsesOverChat,
  ResponsesOverMessages,
  type TranslationSetting,
} from './translated-providers.js'
import type { Channel } from './channel.js'
import { UnknownUpstreamWords } from './unknown-words.js'

type Maker = (capabilities: ProviderCapabilities, setting: TranslationSetting) => object | undefined

/** What serves a client's dialect by an upstream's other one. */
const PROVIDERS: Readonly<Record<string, Maker>> = {
  'chat over messages': ({ messages }, setting) => messages && new ChatOverMessages(messages, setting),
  'messages over chat': ({ chat, responses }, setting) => chat && new MessagesOverChat(chat, responses, setting),
  'responses over chat': ({ chat }, setting) => chat && new ResponsesOverChat(chat, setting),
  'responses over messages': ({ messages }, setting) => messages && new ResponsesOverMessages(messages, setting),
}

/** Makes the providers that translate, and keeps what outlives a call: the gateway's secret, and remembered thoughts. */
@Injectable()
export class Translations {
  private readonly thoughts = new ThoughtMemory()
  private readonly drawnSecret = randomBytes(32)

  constructor(
    private readonly store: ConfigStore,
    private readonly unknownWords: UnknownUpstreamWords,
  ) {}

  /** undefined where nothing translates so, or the upstream lacks the other dialect. */
  providerFor<C extends Capability>(
    capability: C,
    over: WritingDialect,
    capabilities: ProviderCapabilities,
    { channel, row }: { readonly channel: Channel; readonly row: ModelRow | undefined },
    caller: Caller,
  ): RoutedProviderOf<C> | undefined {
    const { secret, rememberThinking, keepResponses } = this.store.current.dialects
    const ownerId = ownerOf(caller)
    const seals = new OwnerSeals(secret === undefined ? this.drawnSecret : Buffer.from(secret), ownerId)
    const setting: TranslationSetting = {
      facts: factsOf(row),
      seals,
      unknownWords: this.unknownWords,
      // Another vendor would refuse what this one has signed.
      thoughts: rememberThinking ? this.thoughts.of(`${ownerId} ${channel.target.origin}`, seals) : undefined,
      keepsResponses: keepResponses,
    }
    return PROVIDERS[`${capability} over ${over}`]?.(capabilities, setting) as RoutedProviderOf<C> | undefined
  }
}
