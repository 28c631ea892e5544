import type { ModelCapability, ModelClass, WritingDialect } from '../config/model-classes.js'
import type { Caller } from '../core/caller.js'
import type { EstimatedUse } from '../core/quota.js'
import type { RequestContext } from '../core/request-context.js'
import type {
  AttemptContext,
  DocumentProvider,
  ImageProvider,
  ModelOffer,
  KeptResponsesProvider,
  RealtimeProvider,
  RoutedProviderOf,
  VideoProvider,
} from '../providers/contract.js'

/** How one channel does at this moment. Times in milliseconds. */
export interface ChannelReport {
  readonly channelId: string
  /** `closed` = calls as usual, `half_open` = one call may try whether it works again, `open` = spared. */
  readonly state: 'closed' | 'half_open' | 'open'
  readonly consecutiveFailures: number
  /** Until a call may try it again; 0 = not open, or one may try now. */
  readonly openForMs: number
  /** Calls that wait for their first byte. */
  readonly waiting: number
  /** To the first byte, on average; undefined where it is unknown. */
  readonly latencyMs: number | undefined
}

/** What an operator may know of channels, and do about them; the token under which that is injected. */
export abstract class ChannelReports {
  /** Every channel of the configuration, in its order, as this process sees it. */
  abstract snapshot(): readonly ChannelReport[]
  /** Closes the channel's breaker, as if it had never failed. */
  abstract reset(channelId: string): void
}

/** How a call may be repeated on another channel (design: Reliability rules). */
export interface AttemptPolicy {
  /** False for calls whose request must not be sent twice once it was sent: paid creates, uploads over 10 MB. */
  readonly canRetryAfterSend: boolean
  /** Reserved before the first attempt; computed only for a request with a quota. */
  readonly estimatedUse?: EstimatedUse | undefined
}

/** The channels that can serve one call, best first. */
export interface Route<Provider> {
  readonly modelClass: ModelClass
  /**
   * Runs the call on the best channel and, when that fails before a byte reached the caller and the policy, the
   * deadline and the retry budget allow it, once more on another. Rejects with the last attempt's `GatewayError`, or
   * with `rate_limited` when `estimatedUse` does not fit into the limits of the caller's key.
   */
  attempt<Result>(
    call: RequestContext,
    policy: AttemptPolicy,
    run: (provider: Provider, context: AttemptContext) => Promise<Result>,
  ): Promise<Result>
}

/** One channel by itself, for tasks that live on it. */
export interface PinnedRoute<Provider> extends Route<Provider> {
  readonly channelId: string
  readonly options: Readonly<Record<string, unknown>>
}

/** Documents have no model, and so no class. */
export type DocumentRoute = Pick<Route<DocumentProvider>, 'attempt'>

/** What a channel has under a name for a model that transcribes. */
export interface TranscriptionModel {
  /** Whether a transcription session there may name it. In a conversation any model of the upstream may transcribe. */
  readonly isServed: boolean
  /** undefined where the catalogue does not know it. */
  readonly modelClass: ModelClass | undefined
}

/** A model as `GET /v1/models` shows it. */
export interface ListedModel {
  readonly id: string
  readonly class: ModelClass
  /** What its channels serve of what its class can be asked for. */
  readonly capabilities: readonly ModelCapability[]
  readonly providers: readonly string[]
  /** In which it can be asked, by translation or not; absent where nothing is translated. */
  readonly dialects?: readonly WritingDialect[]
  /** The day on which it was published, `YYYY-MM-DD`; absent where that is not known. */
  readonly createdAt?: string
  /** What clients can choose; empty where there is nothing to choose, or anything is relayed. */
  readonly offer: ModelOffer
}

/**
 * Finds the provider for a model; the token under which capabilities inject it. `route` throws `forbidden_model` when the
 * caller's key may not use the model, `unknown_model` when no channel serves it in that capability, and `unauthorized`
 * when only channels that pass the caller's key on could serve it and the key cannot be passed.
 */
export abstract class ProviderRouter {
  abstract route<C extends ModelCapability>(
    capability: C,
    model: string,
    caller: Caller,
    /** Where what the request refers to lives; absent = any. */
    channelId?: string,
  ): Route<RoutedProviderOf<C>>
  /**
   * The channels that open a transcription session whose model is named later, in its settings: they serve one that transcribes and
   * that the key may use. Throws as `route` does.
   */
  abstract transcriptionWithoutModel(caller: Caller): Route<RealtimeProvider>
  /** A model that the settings of a session on the channel name. */
  abstract transcriptionModel(channelId: string, model: string): TranscriptionModel
  /** Every video channel that accepts the caller, whatever the model, best first. Never throws. */
  abstract videoChannels(caller: Caller): readonly PinnedRoute<VideoProvider>[]
  /** The same for responses that upstreams keep. */
  abstract responseChannels(caller: Caller): readonly PinnedRoute<KeptResponsesProvider>[]
  /** The same for image tasks, which have no model. */
  abstract imageChannels(caller: Caller): readonly PinnedRoute<ImageProvider>[]
  /** The channels that read documents, tried as a model's are; undefined when the gateway is to read them itself. */
  abstract document(caller: Caller): DocumentRoute | undefined
  /** The models the caller's key may use and some channel serves, by id. */
  abstract models(caller: Caller): readonly ListedModel[]
}
