import type { Type } from '@nestjs/common'
import type { WebSocket } from 'ws'
import type { ModelFactsSection, ProviderSettings } from '../config/channel-schema.js'
import type { ModelCapability, ModelClass } from '../config/model-classes.js'
import type { ProviderResponse } from '../core/byte-stream.js'
import type { JsonBody, ModelFields } from '../core/json-body.js'
import type { MemoryLease } from '../core/quota.js'
import type { AttemptRecord } from '../core/request-context.js'
import type { MultipartField, SpooledFile, UploadedFile } from '../core/spooled-file.js'
import type { MessagesFields } from '../dialects/anthropic-messages.js'
import type { ResponsesCall, ResponsesQuestion } from '../dialects/openai-responses.js'
import type { EndOfResponse, ResponseProgress } from '../dialects/response-state.js'
import type { ChatFields } from '../dialects/openai-wire.js'
import type { RealtimeDialect, SessionKind } from '../dialects/realtime/dialect.js'
import type { ExchangeContext } from '../upstream/exchange.js'
import type { UpstreamTarget } from '../upstream/upstream-client.js'

/** One attempt of a request on one channel; everything a provider may know, passed as an argument. */
export interface AttemptContext extends ExchangeContext {
  /** The caller's name for it, for errors that say it. */
  readonly requestId: string
  /** What the provider learns; it writes nowhere else. */
  readonly record: AttemptRecord
  /** For what is held in memory until the request is over. */
  readonly memory: MemoryLease | undefined
  readonly channelId: string
  readonly target: UpstreamTarget
  /** The channel's secret, or the caller's own bearer. */
  readonly credentials: string
  /** True when `credentials` is the caller's own, so that a refused key is the caller's fault. */
  readonly callersKey: boolean
  /** The model's name at this upstream. */
  readonly upstreamModel: string
  /** The channel's names of models, for those that only the events of a session name. */
  readonly modelMap: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, unknown>>
  /** On the performance clock; shared by all attempts of the call. */
  readonly deadlineAtMs: number
  /** The caller takes no translation that approximates or drops anything. */
  readonly isStrict: boolean
}

/** Answers requests whose body is JSON and names the model: the contract of every capability without one of its own. */
export interface JsonProvider<Fields extends ModelFields = ModelFields> {
  respond(body: JsonBody<Fields>, context: AttemptContext): Promise<ProviderResponse>
}

export type ChatProvider = JsonProvider<ChatFields>

/** Specification: Image task, status values; beyond the two seen there, those of the proxy family. */
export const IMAGE_STATUSES = [
  'NOT_START',
  'SUBMITTED',
  'MODAL',
  'IN_PROGRESS',
  'SUCCESS',
  'FAILURE',
  'CANCEL',
] as const
export type ImageTaskStatus = (typeof IMAGE_STATUSES)[number]

/** An image task as its upstream shows it. */
export interface UpstreamImageTask {
  readonly status: string
  readonly progress: string
  /** Empty until there is a picture; another one with each preview. */
  readonly imageUrl: string
  /** True for SUCCESS, FAILURE and CANCEL. */
  readonly isTerminal: boolean
  /** The whole task object as JSON text: every field of the specification present, unknown ones kept. */
  readonly object: string
}

export interface ImageProvider {
  /** undefined when the upstream knows no such task, in whatever way it says so. */
  fetch(id: string, context: AttemptContext): Promise<UpstreamImageTask | undefined>
  /** The task object, with the seed in `properties.seed` where the upstream answers with the seed alone. */
  seed(id: string, context: AttemptContext): Promise<UpstreamImageTask | undefined>
}

/** A messages-style request with the headers of its dialect that may travel on. */
export interface MessagesCall {
  readonly body: JsonBody<MessagesFields>
  /** `anthropic-version`; the specification's clients may leave it out. */
  readonly version?: string
  /** `anthropic-beta`, a comma-separated list. */
  readonly beta?: string
  /** `anthropic-user-profile-id`: on whose behalf the request is made. */
  readonly userProfileId?: string
  /** `?beta=true`, as beta clients send it. */
  readonly betaQuery: boolean
}

export interface MessagesProvider {
  create(messages: MessagesCall, context: AttemptContext): Promise<ProviderResponse>
  countTokens(messages: MessagesCall, context: AttemptContext): Promise<ProviderResponse>
}

/** A question about a response that an upstream keeps. */
export interface KeptResponseCall {
  /** Known to be one of the upstream's; no character in it needs to be escaped. */
  readonly id: string
  /** Begins with `?`, or is empty. */
  readonly query: string
}

/** One whose answer may show the end of a response that was made in the background. */
export interface KeptResponseRead extends KeptResponseCall {
  readonly ended: EndOfResponse | undefined
}

export interface ResponsesProvider {
  create(call: ResponsesCall, context: AttemptContext): Promise<ProviderResponse>
  countInputTokens(question: ResponsesQuestion, context: AttemptContext): Promise<ProviderResponse>
}

/** An upstream that keeps responses. */
export interface KeptResponsesProvider extends ResponsesProvider {
  read(call: KeptResponseRead, context: AttemptContext): Promise<ProviderResponse>
  /** Its events, from where the query says to its end. */
  events(call: KeptResponseRead, context: AttemptContext): Promise<ProviderResponse>
  inputItems(call: KeptResponseCall, context: AttemptContext): Promise<ProviderResponse>
  cancel(call: KeptResponseRead, context: AttemptContext): Promise<ProviderResponse>
  delete(call: KeptResponseCall, context: AttemptContext): Promise<ProviderResponse>
  /** What has become of a response, for the gateway itself. */
  progress(id: string, context: AttemptContext): Promise<ResponseProgress>
}

/** What is to be read: a page at a URL that was checked already, or a file that lies here. */
export type ReadSource =
  | { readonly kind: 'url'; readonly url: string }
  | {
      readonly kind: 'file'
      readonly spool: SpooledFile
      /** Safe to send; '' when there is none. */
      readonly name: string
      /** As the caller claimed it; '' when nobody said. */
      readonly contentType: string
    }

export interface ReadRequest {
  readonly source: ReadSource
  /** What is left for the whole of it, in milliseconds. */
  readonly timeoutMs: number
  /** The caller does not want what was read before. */
  readonly isFresh: boolean
  /** The longest answer of an upstream that is taken, in bytes. */
  readonly responseBytes: number
}

/** What a document's result lacks. The codes of the gateway's own engine are in docs/documents.md; other readers have theirs. */
export interface ReadWarning {
  readonly code: string
  readonly message: string
  /** From 1 on; absent where it is about the whole document. */
  readonly pages?: readonly number[]
}

/** Specification: Document parse result, metadata without `cached`; '' where it is not known. */
export interface ReadMetadata {
  readonly url: string
  readonly title: string
  readonly description: string
  readonly keywords: string
  readonly siteName: string
  readonly favicon: string
  /** Of the document's own server; 200 for uploads. */
  readonly statusCode: number
  readonly contentType: string
  /** A BCP 47 tag. */
  readonly language: string
  readonly warnings: readonly ReadWarning[]
}

export interface ReadDocument {
  readonly metadata: ReadMetadata
  /** UTF-8 JSON text `"html":"…","markdown":"…"`. */
  readonly content: Buffer
  /** Pages, slides or sheets; 1 where the question makes no sense. */
  readonly pages: number
  /** True when the reader itself says that it had read it before. */
  readonly isCached: boolean
}

export interface DocumentProvider {
  /** Rejects with a `GatewayError`; a document that cannot be read is the caller's fault, not the channel's. */
  read(request: ReadRequest, context: AttemptContext): Promise<ReadDocument>
}

/** What a caller asked for when it opened its socket; the settings of a transcription session name the model that transcribes. */
export interface RealtimeOpening {
  readonly kind: SessionKind
  /** Only a transcription session may be opened without one. */
  readonly model: string | undefined
  /** The caller's other query parameters, decoded. What an upstream may be told is the provider's list. */
  readonly query: Readonly<Record<string, string>>
}

/** An open session at an upstream, not a byte of which has been read. */
export interface RealtimeUpstream {
  /** Open and paused: attach listeners, then `resume`. Whoever holds it closes it. */
  readonly socket: WebSocket
  readonly dialect: RealtimeDialect
}

export interface RealtimeProvider {
  /** Dials; rejects with the `GatewayError` of an upstream that refuses, fails or is silent. */
  open(opening: RealtimeOpening, context: AttemptContext): Promise<RealtimeUpstream>
}

/** Fields of the specification's speech request; others travel on in the body's bytes. */
export interface SpeechFields {
  readonly model: string
  readonly input: string
  readonly voice: string | { readonly id: string }
  readonly instructions?: string | null
  readonly response_format?: string | null
  readonly speed?: number | null
  readonly stream_format?: string | null
  readonly metadata?: Readonly<Record<string, unknown>> | null
}

export interface SpeechCall {
  readonly body: JsonBody<SpeechFields>
  readonly modelClass: ModelClass
}

/** Turns text into audio: raw bytes in the format asked for, or the one event form of every provider. */
export interface SpeechProvider {
  speak(speech: SpeechCall, context: AttemptContext): Promise<ProviderResponse>
}

/** An audio file that was looked at, with the caller's fields in the order and spelling they came in. */
export interface TranscriptionCall {
  readonly file: UploadedFile
  /** By content, not by the caller's file name. */
  readonly extension: string
  readonly contentType: string
  readonly durationSeconds?: number
  readonly fields: readonly MultipartField[]
  /** The format the caller asked for; `json` when absent. */
  readonly responseFormat: string
  readonly stream: boolean
  readonly modelClass: ModelClass
}

export interface TranscriptionProvider {
  transcribe(transcription: TranscriptionCall, context: AttemptContext): Promise<ProviderResponse>
}

/** Audio in any language to English text. */
export interface TranslationProvider {
  translate(translation: TranscriptionCall, context: AttemptContext): Promise<ProviderResponse>
}

/** The two kinds of video tasks (specification: Video task), named as their paths are. */
export const VIDEO_KINDS = ['multi-image2video', 'text2video'] as const
export type VideoKind = (typeof VIDEO_KINDS)[number]

export type VideoTaskStatus = 'submitted' | 'processing' | 'succeed' | 'failed'

/** A task as its upstream shows it. */
export interface UpstreamVideoTask {
  readonly id: string
  readonly status: VideoTaskStatus
  /** The whole task object as JSON text, exactly as the upstream spelled it: big integers and unknown fields travel on. */
  readonly object: string
  /** Unix milliseconds by the upstream's clock; absent when it says nothing. */
  readonly updatedAtMs?: number
  /** The envelope's own word, e.g. `SUCCEED`. */
  readonly message: string
}

export interface VideoProvider {
  /**
   * Sends the complete JSON body once. Rejects with a `GatewayError`: phase `unsent` or `answered` where no task can have
   * been made, phase `sent` where one may have been (a lost or unreadable answer, 5000, 5002, any 5xx without a code).
   */
  create(kind: VideoKind, body: readonly Buffer[], context: AttemptContext): Promise<UpstreamVideoTask>
  /** By the upstream's id or by the external id that was sent to it; undefined when the upstream knows no such task. */
  read(kind: VideoKind, id: string, context: AttemptContext): Promise<UpstreamVideoTask | undefined>
}

/** The contracts of capabilities whose requests are more than JSON. */
interface OwnContracts {
  readonly speech: SpeechProvider
  readonly transcription: TranscriptionProvider
  readonly translation: TranslationProvider
  readonly chat: ChatProvider
  readonly responses: KeptResponsesProvider
  readonly messages: MessagesProvider
  readonly realtime: RealtimeProvider
  readonly realtime_transcription: RealtimeProvider
  readonly video: VideoProvider
  readonly image: ImageProvider
  readonly document: DocumentProvider
}

export type Capability = ModelCapability | 'document'
export type ProviderOf<C extends Capability> = C extends keyof OwnContracts ? OwnContracts[C] : JsonProvider

/** What serves a call: the upstream's own provider, or a translation to it, behind which no response is kept. */
export type RoutedProviderOf<C extends Capability> = C extends 'responses' ? ResponsesProvider : ProviderOf<C>

/** What an upstream can do. An absent member is an absent capability; there is no method that only refuses. */
export type ProviderCapabilities = { readonly [C in Capability]?: ProviderOf<C> }

/** What clients can choose of the models of a class, as `GET /v1/models` shows it. */
export interface ModelOffer {
  /** Names for `voice`; others may be relayed. */
  readonly voices?: readonly string[]
  /** Values of `response_format`. */
  readonly formats?: readonly string[]
}

/** Ids of models, alone or each with the day on which it was published, `YYYY-MM-DD`; null where that is not known. */
export type PublicModels = readonly string[] | Readonly<Record<string, string | null>>

export type ModelsByClass = Readonly<Partial<Record<ModelClass, PublicModels>>>

/** All that the rest of the gateway knows of an upstream; `app/providers.ts` lists them. */
export interface ProviderManifest extends ProviderSettings {
  /** The injectable class behind each capability; one class may stand for several. */
  readonly capabilities: { readonly [C in Capability]?: Type<ProviderOf<C>> }
  /** Further injectable classes, which those ask for. */
  readonly injectables?: readonly Type<object>[]
  /** What a model without a row in the catalogue is on this upstream's channels (docs/decisions/0005). */
  readonly defaultModelClass: ModelClass
  /** Public identifiers for the built-in catalogue, so that a user of an official SDK needs no configuration. */
  readonly models: ModelsByClass
  readonly offers?: Readonly<Partial<Record<ModelClass, ModelOffer>>>
  /** Those of them that think without showing it, unless they are asked not to. */
  readonly reasoningModels?: readonly string[]
  /** What translations to their dialect depend on, by their ids. */
  readonly modelFacts?: Readonly<Record<string, ModelFactsSection>>
}
