import { FrameScan } from '../core/json-spans.js'
import { isRecord } from '../core/validation-rules.js'
import {
  APPEND,
  checkClientEvent,
  type ClientEvent,
  type ClientEventLimits,
  isEventRefusal,
} from '../dialects/realtime/client-events.js'
import { RealtimeTranslator } from '../dialects/realtime/translator.js'
import type { RealtimeUpstream } from '../providers/contract.js'
import { MessageQueue, RateLimit } from './message-queue.js'
import { SessionClose } from './session-close.js'
import type { SessionContext } from './session-context.js'
import * as endings from './session-endings.js'
import { errorEvent, type RealtimeError, scrubUpstreamText } from './session-endings.js'
import { SessionLimitGuard, type LimitDecision } from './session-limits.js'
import { SessionTimers } from './session-timers.js'
import { billedKind, SessionUsage } from './session-usage.js'
import { type SessionSocket, SocketSide } from './socket.js'

const NOTHING: readonly Buffer[] = []

/**
 * What a session does with each message of its upstream. Only the few that bill something or report an error are
 * parsed; the others, audio above all, are passed to the translation as they are.
 */
class UpstreamEvents {
  private hasWarned = false

  constructor(
    private readonly context: SessionContext,
    private readonly translator: RealtimeTranslator,
    private readonly usage: SessionUsage,
  ) {}

  /**
   * The messages for the client. None for what is no event (binary, not a JSON object): no client could read it, and
   * the log tells of the first of a session. Never throws.
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
    if (kind === undefined) this.usage.see(type, message, scan)
    else this.usage.recordEvent(kind, message)
    return mayReportError(type) ? this.withoutSecrets(message, type) : message
  }

  /** The very same message when the text of its error, if it reports one, may be seen as it is. */
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

  private drop(fault: unknown): readonly Buffer[] {
    const { requestId, channelId, logger } = this.context
    if (!this.hasWarned) logger.warn({ requestId, channel: channelId, err: fault }, 'upstream message dropped')
    this.hasWarned = true
    return NOTHING
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

/** All that a session still passes on to its upstream while it finishes: it begins nothing. */
const CANCEL = 'response.cancel'

const NOT_TEXT: RealtimeError = {
  type: 'invalid_request_error',
  code: 'invalid_event',
  message: 'Events are text messages; binary messages are not accepted.',
}

/**
 * A client and its upstream, joined: events are checked, translated and forwarded in order until either side, a limit
 * or a drain ends it. Both sockets are handed over open and paused. Nothing of a conversation is kept.
 */
export class RealtimeSession {
  /** Resolves, never rejects, when both connections are gone, nothing of the session is left, and all is accounted for. */
  readonly ended: Promise<void>
  private readonly client: SocketSide
  private readonly upstream: SocketSide
  private readonly translator: RealtimeTranslator
  private readonly usage: SessionUsage
  private readonly upstreamEvents: UpstreamEvents
  private readonly queue: MessageQueue
  private readonly eventLimits: ClientEventLimits
  private readonly limitGuard: SessionLimitGuard
  private readonly eventRate: RateLimit
  private readonly pingRate: RateLimit
  private readonly clock: SessionTimers
  private readonly closing: SessionClose
  private isFinishing = false
  /** An answer that the client asks for is waited for by whoever counts. */
  private isJudging = false

  constructor(
    client: SessionSocket,
    { socket, dialect }: RealtimeUpstream,
    private readonly context: SessionContext,
  ) {
    const { limits, clientDialect, model } = context
    this.client = new SocketSide(client, limits.realtimePauseBytes)
    this.upstream = new SocketSide(socket, limits.realtimePauseBytes)
    this.translator = new RealtimeTranslator({ client: clientDialect, upstream: dialect })
    this.usage = new SessionUsage(context)
    this.upstreamEvents = new UpstreamEvents(context, this.translator, this.usage)
    this.queue = new MessageQueue(this.client, this.onOrdered, this.onFailure)
    this.eventLimits = { maximumAudioBytes: limits.realtimeAudioBytes, model }
    this.limitGuard = new SessionLimitGuard(context.call.quota, this.usage)
    this.eventRate = new RateLimit(limits.realtimeEventsPerSecond)
    this.pingRate = new RateLimit(limits.realtimePingsPerSecond)
    this.closing = new SessionClose(this.client, this.upstream, context, this.onEnding)
    this.ended = this.closing.done.then(this.onEnded)
    this.clock = new SessionTimers(limits, this.client, this.upstream, this.closing.end)
  }

  /** Why the session ended, in a word for the log; undefined while it runs. */
  get endCause(): string | undefined {
    return this.closing.ending?.cause
  }

  /** Listens to both sides and lets them speak. */
  start(): void {
    const { client, upstream } = this
    client.socket.on('message', this.onClientMessage).on('ping', this.onClientPing).on('pong', this.onClientPing)
    // Listened to until it is gone: what it has billed counts, though nobody hears it any more.
    upstream.socket.on('message', this.onUpstreamMessage).once('close', () => {
      upstream.socket.off('message', this.onUpstreamMessage)
    })
    this.clock.start()
    this.closing.watch()
    client.socket.resume()
    upstream.socket.resume()
  }

  /**
   * Ends the session because the process is to end: at once, or, where an answer is under way, as soon as that has ended and
   * has been passed on. What the client sends meanwhile is judged as always, but nothing of it begins any more.
   */
  finish(): void {
    this.isFinishing = true
    this.endWhenResponded()
  }

  /** Ends the session because the process does, whatever is under way. */
  drain(): void {
    this.closing.end(endings.drained)
  }

  /** Ends the session because the key that opened it works no more. */
  revoke(): void {
    this.closing.end(endings.keyRevoked)
  }

  private readonly onClientMessage = (message: unknown, isBinary: boolean): void => {
    this.countReceived((message as Buffer).length)
    if (!this.eventRate.take()) {
      this.closing.end(endings.tooManyEvents)
      return
    }
    this.clock.onMessage()
    this.queue.take(message as Buffer, isBinary)
  }

  private readonly onOrdered = (message: Buffer, isBinary: boolean): Promise<void> | undefined => {
    if (!isBinary) return this.forward(message)
    this.refuse(NOT_TEXT)
    return undefined
  }

  private readonly onFailure = (error: unknown): void => {
    this.closing.end(endings.gatewayFailed(error))
  }

  private countReceived(bytes: number): void {
    const { call, traffic } = this.context
    call.log.bytesIn += bytes
    traffic.clientEvents++
    traffic.clientBytes += bytes
  }

  /** Returns what is waited for before the event may go on, if anything. */
  private forward(message: Buffer): Promise<void> | undefined {
    const event = checkClientEvent(message, this.context.clientDialect.dialect, this.eventLimits)
    if (isEventRefusal(event)) {
      this.refuse(event)
      return undefined
    }
    if (this.isFinishing && event.type !== CANCEL) return undefined
    const verdict = this.limitGuard.check(event)
    if (!(verdict instanceof Promise)) {
      this.obey(verdict, event)
      return undefined
    }
    this.isJudging = true
    return verdict.then((late) => {
      this.isJudging = false
      this.obey(late, event)
      this.endWhenResponded()
    })
  }

  private obey(verdict: LimitDecision, event: ClientEvent): void {
    if (verdict === 'forward') {
      if (event.type === APPEND) this.usage.append(event.frame.length)
      else this.usage.send(event.type, event.frame)
      for (const frame of this.translator.toUpstream(event)) this.upstream.send(frame, this.client)
    } else if (verdict !== 'drop') {
      this.refuse(verdict)
    }
  }

  private refuse(error: RealtimeError): void {
    this.context.call.log.bytesOut += this.client.send(errorEvent(error), this.client)
  }

  private readonly onUpstreamMessage = (message: unknown, isBinary: boolean): void => {
    this.clock.onMessage()
    this.context.traffic.upstreamEvents++
    this.context.traffic.upstreamBytes += (message as Buffer).length
    for (const frame of this.upstreamEvents.read(message as Buffer, isBinary)) {
      this.context.call.log.bytesOut += this.client.send(frame, this.upstream)
    }
    this.endWhenResponded()
  }

  private endWhenResponded(): void {
    if (this.isFinishing && !this.isJudging && !this.usage.isResponding()) this.closing.end(endings.drained)
  }

  /** Pongs nobody asked for are counted like pings: either costs the same. */
  private readonly onClientPing = (): void => {
    if (!this.pingRate.take()) this.closing.end(endings.tooManyPings)
  }

  private readonly onEnded = (): void => {
    const { ending } = this.closing
    if (ending !== undefined) this.usage.end(ending.outcome)
  }

  private readonly onEnding = (): void => {
    const { socket } = this.client
    this.clock.stop()
    this.queue.stop()
    socket.off('message', this.onClientMessage).off('ping', this.onClientPing).off('pong', this.onClientPing)
  }
}
