import { Injectable } from '@nestjs/common'
import { GatewayError } from '../core/gateway-error.js'
import { Call, callerLeft } from '../core/request-context.js'
import type { DocumentReading } from './document-reading.js'

/** How long one of those who wait does. */
interface Patience {
  /** As the caller asked for it, for words. */
  readonly timeoutMs: number
  /** On the performance clock. */
  readonly deadlineAtMs: number
}

type BeginReading = (call: Call) => Promise<DocumentReading>

/**
 * Readings that are under way: those who ask for the same at the same time share one. It goes on as long as one of them
 * waits, and ends with the last one who leaves.
 */
@Injectable()
export class SharedReadings {
  private readonly running = new Map<string, SharedReading>()

  /**
   * Waits for the reading with this key, which `begin` begins when there is none; the call it is given is nobody's. Rejects
   * as the reading does, and for this caller alone with `caller_left` or, after its deadline, with `upstream_timeout`.
   */
  async wait(key: string, call: Call, patience: Patience, begin: BeginReading): Promise<DocumentReading> {
    call.assertPresent()
    const reading = this.running.get(key) ?? this.begin(key, call, begin)
    try {
      return await reading.wait(call, patience)
    } finally {
      noteWork(reading.call, call)
    }
  }

  private begin(key: string, first: Call, begin: BeginReading): SharedReading {
    const { caller, memory, method, path, requestId, trace } = first
    const call = new Call(requestId, method, path, performance.now())
    call.caller = caller
    call.memory = memory
    // Its upstream belongs to the trace of whoever asked first.
    call.trace = trace
    const reading = new SharedReading(call, begin, () => {
      if (this.running.get(key) === reading) this.running.delete(key)
    })
    this.running.set(key, reading)
    return reading
  }
}

class SharedReading {
  private waiting = 0
  private readonly outcome: Promise<DocumentReading>

  constructor(
    readonly call: Call,
    begin: BeginReading,
    private readonly close: () => void,
  ) {
    this.outcome = begin(call).finally(() => {
      close()
      call.memory?.close(call)
    })
    // When everybody has left, nobody hears how it ends.
    this.outcome.catch(() => undefined)
  }

  wait({ departure }: Call, { timeoutMs, deadlineAtMs }: Patience): Promise<DocumentReading> {
    this.waiting++
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        forget()
      }
      const leave = (error: GatewayError): void => {
        settle()
        reject(error)
        this.waiting--
        if (this.waiting === 0) this.abandon()
      }
      const timer = setTimeout(() => {
        leave(late(timeoutMs))
      }, deadlineAtMs - performance.now())
      const forget = departure.onLeave(() => {
        leave(callerLeft())
      })
      this.outcome.then(resolve, reject).finally(settle)
    })
  }

  /** Nobody may join a reading that is being ended. */
  private abandon(): void {
    this.close()
    this.call.departure.announce()
  }
}

/** What the log line of a caller says about work that was shared. */
function noteWork(
  { log: { channelId, upstreamStatus, upstreamRequestId, firstByteMs, ...work } }: Call,
  to: Call,
): void {
  to.log.tried.push(...work.tried)
  to.log.upstreamMs = work.upstreamMs
  if (channelId !== undefined) to.log.channelId = channelId
  if (upstreamStatus !== undefined) to.log.upstreamStatus = upstreamStatus
  if (upstreamRequestId !== undefined) to.log.upstreamRequestId = upstreamRequestId
  if (firstByteMs !== undefined) to.log.firstByteMs = firstByteMs
}

const late = (timeoutMs: number): GatewayError =>
  new GatewayError('upstream_timeout', `The document could not be read within ${Math.round(timeoutMs)} ms.`)
