import { randomBytes } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { ModelRow } from '../config/channel-schema.js'
import type { WritingDialect } from '../config/model-classes.js'
import { type Caller, ownerOf } from '../core/caller.js'
import { factsOf } from '../dialects/model-facts.js'
import { OwnerSeals } from '../dialects/translations/seals.js'
import { ThoughtMemory } from '../dialects/translations/thought-memory.js'
import type { ProviderCapabilities, RoutedProviderOf } from '../providers/contract.js'
import { TRANSLATIONS } from './translated-providers.js'
import type { Channel } from './channel.js'
import { UnknownUpstreamWords } from './unknown-words.js'

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
  providerFor<Dialect extends WritingDialect>(
    { client, upstream }: { readonly client: Dialect; readonly upstream: WritingDialect },
    capabilities: ProviderCapabilities,
    { channel, row }: { readonly channel: Channel; readonly row: ModelRow | undefined },
    caller: Caller,
  ): RoutedProviderOf<Dialect> | undefined {
    const { secret, rememberThinking, keepResponses } = this.store.current.dialects
    const ownerId = ownerOf(caller)
    const seals = new OwnerSeals(secret === undefined ? this.drawnSecret : Buffer.from(secret), ownerId)
    const entry = TRANSLATIONS[client].find(({ over }) => over === upstream)
    return entry?.provider(capabilities, {
      pair: { client, upstream },
      facts: factsOf(row),
      seals,
      unknownWords: this.unknownWords,
      // Another vendor would refuse what this one has signed.
      thoughts: rememberThinking ? this.thoughts.of(`${ownerId} ${channel.target.origin}`, seals) : undefined,
      keepsResponses: keepResponses,
    })
  }
}
