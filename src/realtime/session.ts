import { globMatcher } from '../core/caller.js'
import { FrameScan } from '../core/json-spans.js'
import { isRecord } from '../core/validation-rules.js'
import {
  APPEND,
  checkClientEvent,
  type ClientEvent,
  type ClientEventLimits,
  isEventRefusal,
} from '../dialects/realtime/client-events.js'
import { TranscriptionModelNames } from '../dialects/realtime/transcription-session.js'
import { RealtimeTranslator } from '../dialects/realtime/translator.js'
import type { RealtimeUpstream } from '../providers/contract.js'
import { SessionClose, SessionTimers } from './session-close.js'
import type { SessionContext } from './session-context.js'
import * as endings from './session-endings.js'
import { errorEvent, type RealtimeError, scrubUpstreamText } from './session-endings.js'
import { SessionLimitGuard, type LimitDecision } from './session-limits.js'
import { billedKind, SessionUsage } from './session-usage.js'
import { EventPace, MessageQueue, RateLimit, type SessionSocket, SocketSide } from './socket.js'

const NO_MESSAGES: readonly Buffer[] = []

/**
 * Handles upstream messages. Only the few that bill something or report an error are parsed; the others, audio above
 * all, go to the translator as they are.
 */
class UpstreamEvents {
  private hasWarned = false

  constructor(
    private readonly context: SessionContext,
    private readonly translator: RealtimeTranslator,
    private readonly usage: SessionUsage,
    private readonly modelNames: TranscriptionModelNames,
  ) {}

  /**
   * The messages for the client. None for a message that is not an event (binary, not a JSON object): clients cannot
   * read it, and the first of a session is logged. Never throws.
   */
  read(message: Buffer, isBinary: boolean): readonly Buffer[] {
    if (isBinary) return this.drop('a binary message')
    const scan = FrameScan.of(message)
    if (scan === undefined) return this.drop('not a JSON object')
    try {
      return this.translator.toClient(this.record(message, scan))
    } catch (error) {
      return this.drop(error)
    }
  }

  private record(message: Buffer, scan: FrameScan): Buffer {
    const type = scan.type()?.type ?? ''
    const kind = billedKind(type)
    const event = this.modelNames.toClient(type, message)
    if (kind === undefined) this.usage.onEvent(type, event, scan)
    else this.usage.recordEvent(kind, event, scan)
    return mayReportError(type) ? this.withoutSecrets(event, type) : event
  }

  /** The same message, unless the text of its error shows a secret. */
  private withoutSecrets(message: Buffer, type: string): Buffer {
    const event: unknown = JSON.parse(message.toString())
    const error = isRecord(event) ? errorOf(event) : undefined
    if (type === 'error' && error !== undefined) this.usage.reject(error)
    if (error === undefined || typeof error['message'] !== 'string') return message
    const clean = scrubUpstreamText(error['message'], this.context.credentials)
    if (clean === error['message']) return message
    error['message'] = clean
    return Buffer.from(JSON.stringify(event))
  }

  private drop(error: unknown): readonly Buffer[] {
    const { requestId, channelId, logger } = this.context
    if (!this.hasWarned) logger.warn({ requestId, channel: channelId, err: error }, 'upstream message dropped')
    this.hasWarned = true
    return NO_MESSAGES
  }
}

const mayReportError = (type: string): boolean =>
  type === 'error' || type === 'response.done' || type.endsWith('.failed')

/** Of an `error` event, of a failed input transcription, or of a failed response. */
function errorOf(event: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined {
  const response = event['response']
  const details = isRecord(response) ? response['status_details'] : undefined
  const error = event['error'] ?? (isRecord(details) ? details['error'] : undefined)
  return isRecord(error) ? error : undefined
}

/** The only client event that is still forwarded while a session finishes: it begins nothing. */
const CANCEL = 'response.cancel'

const NOT_TEXT: RealtimeError = {
  type: 'invalid_request_error',
  code: 'invalid_event',
  message: 'Events are text messages; binary messages are not accepted.',
}

/**
 * Joins a client and its upstream: events are checked, translated and forwarded in order until either side, a limit or
 * shutdown ends the session. Both sockets are passed in open and paused. No conversation content is kept.
 */
export class RealtimeSession {
  /** Resolves, never rejects, when both connections are closed and all usage is recorded. */
  readonly ended: Promise<void>
  private readonly client: SocketSide
  private readonly upstream: SocketSide
  private readonly translator: RealtimeTranslator
  private readonly modelNames: TranscriptionModelNames
  private readonly usage: SessionUsage
  private readonly upstreamEvents: UpstreamEvents
  private readonly queue: MessageQueue
  private readonly eventLimits: ClientEventLimits
  private readonly limitGuard: SessionLimitGuard
  private readonly pingRate: RateLimit
  private readonly timers: SessionTimers
  private readonly closing: SessionClose
  private isFinishing = false
  /** A requested response waits for its reservation. */
  private isChecking = false

  constructor(
    client: SessionSocket,
    { socket, dialect }: RealtimeUpstream,
    private readonly context: SessionContext,
  ) {
    const { limits, clientDialect, kind, model, modelMap } = context
    this.client = new SocketSide(client, limits.realtimePauseBytes)
    this.upstream = new SocketSide(socket, limits.realtimePauseBytes)
    this.translator = new RealtimeTranslator({ client: clientDialect, upstream: dialect })
    this.usage = new SessionUsage(context)
    this.modelNames = new TranscriptionModelNames(modelMap)
    this.upstreamEvents = new UpstreamEvents(context, this.translator, this.usage, this.modelNames)
    this.queue = new MessageQueue(this.client, new EventPace(limits.realtimeEventsPerSecond, limits.realtimeBurstMs), {
      handle: this.onOrdered,
      onFailure: this.onFailure,
      onTooFast: this.onTooFast,
    })
    const isOpenToKey = globMatcher(context.call.caller.models)
    // In a conversation any model of the upstream may transcribe; in a transcription session only one that the channel serves.
    const mayUse =
      kind === 'transcription'
        ? (named: string) => isOpenToKey(named) && context.transcriptionModel(named).isServed
        : isOpenToKey
    const assumedDialect = clientDialect.spoken
    this.eventLimits = { maximumAudioBytes: limits.realtimeAudioBytes, kind, model, mayUse, assumedDialect }
    this.limitGuard = new SessionLimitGuard(context.call.quota, this.usage)
    this.pingRate = new RateLimit(limits.realtimePingsPerSecond)
    this.closing = new SessionClose(this.client, this.upstream, context, this.onEnding)
    this.ended = this.closing.done.then(this.onEnded)
    this.timers = new SessionTimers(limits, this.client, this.upstream, this.closing.end)
  }

  /** Why the session ended, as a short word for the log; undefined while it runs. */
  get endCause(): string | undefined {
    return this.closing.ending?.cause
  }

  /** Attaches the listeners and resumes both sockets. */
  start(): void {
    const { client, upstream } = this
    client.socket.on('message', this.onClientMessage).on('ping', this.onClientPing).on('pong', this.onClientPing)
    // Kept until the socket closes: usage reported after the end of the session counts.
    upstream.socket.on('message', this.onUpstreamMessage).once('close', () => {
      upstream.socket.off('message', this.onUpstreamMessage)
    })
    this.timers.start()
    this.closing.watch()
    client.socket.resume()
    upstream.socket.resume()
  }

  /**
   * Ends the session for a shutdown: at once, or after the response under way. Client events are still checked
   * meanwhile, but start nothing.
   */
  finish(): void {
    this.isFinishing = true
    this.endWhenResponded()
  }

  /** Ends the session at the end of the grace time. */
  drain(): void {
    this.closing.end(endings.drained)
  }

  /** Ends the session because its key has been revoked. */
  revoke(): void {
    this.closing.end(endings.keyRevoked)
  }

  private readonly onClientMessage = (message: unknown, isBinary: boolean): void => {
    this.countReceived((message as Buffer).length)
    this.queue.take(message as Buffer, isBinary)
  }

  private readonly onOrdered = (message: Buffer, isBinary: boolean): Promise<void> | undefined => {
    this.timers.onMessage()
    if (!isBinary) return this.forward(message)
    this.refuse(NOT_TEXT)
    return undefined
  }

  private readonly onFailure = (error: unknown): void => {
    this.closing.end(endings.gatewayFailed(error))
  }

  private readonly onTooFast = (): void => {
    this.closing.end(endings.tooManyEvents)
  }

  private countReceived(bytes: number): void {
    const { call, traffic } = this.context
    call.log.bytesIn += bytes
    traffic.clientEvents++
    traffic.clientBytes += bytes
  }

  /** Returns a promise when the event has to wait for its reservation. */
  private forward(message: Buffer): Promise<void> | undefined {
    const event = checkClientEvent(message, this.context.clientDialect.dialect, this.eventLimits)
    if (isEventRefusal(event)) {
      this.refuse(event)
      return undefined
    }
    if (this.isFinishing && event.type !== CANCEL) return undefined
    const decision = this.limitGuard.check(event)
    if (!(decision instanceof Promise)) {
      this.apply(decision, event)
      return undefined
    }
    this.isChecking = true
    return decision.then((lateDecision) => {
      this.isChecking = false
      this.apply(lateDecision, event)
      this.endWhenResponded()
    })
  }

  private apply(decision: LimitDecision, event: ClientEvent): void {
    if (decision === 'forward') {
      if (event.type === APPEND) this.usage.append(event.frame.length)
      else this.usage.send(event.type, event.frame)
      for (const frame of this.translator.toUpstream(this.renamed(event))) this.upstream.send(frame, this.client)
    } else if (decision !== 'drop') {
      this.refuse(decision)
    }
  }

  /** With the upstream's name of the model that transcribes. */
  private renamed(event: ClientEvent): ClientEvent {
    const frame = this.modelNames.toUpstream(event.type, event.frame)
    return frame === event.frame ? event : { ...event, frame }
  }

  private refuse(error: RealtimeError): void {
    this.context.call.log.bytesOut += this.client.send(errorEvent(error), this.client)
  }

  private readonly onUpstreamMessage = (message: unknown, isBinary: boolean): void => {
    this.timers.onMessage()
    this.context.traffic.upstreamEvents++
    this.context.traffic.upstreamBytes += (message as Buffer).length
    for (const frame of this.upstreamEvents.read(message as Buffer, isBinary)) {
      this.context.call.log.bytesOut += this.client.send(frame, this.upstream)
    }
    this.endWhenResponded()
  }

  private endWhenResponded(): void {
    if (this.isFinishing && !this.isChecking && !this.usage.isBusy()) this.closing.end(endings.drained)
  }

  /** Unsolicited pongs are counted like pings: they cost the same. */
  private readonly onClientPing = (): void => {
    if (!this.pingRate.take()) this.closing.end(endings.tooManyPings)
  }

  private readonly onEnded = (): void => {
    const { ending } = this.closing
    if (ending !== undefined) this.usage.end(ending.outcome)
  }

  private readonly onEnding = (): void => {
    const { socket } = this.client
    this.timers.stop()
    this.queue.stop()
    socket.off('message', this.onClientMessage).off('ping', this.onClientPing).off('pong', this.onClientPing)
  }
}
