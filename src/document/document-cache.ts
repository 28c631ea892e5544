import { Injectable } from '@nestjs/common'
import { LRUCache } from 'lru-cache'
import { ConfigStore } from '../config/config-store.js'
import type { DocumentsSection } from '../config/settings.js'
import { GatewayError } from '../core/errors.js'
import { RequestContext, clientDisconnected } from '../core/request-context.js'
import type { ReadDocument } from '../providers/contract.js'

/** A document that was read, and to whom it may be given again. */
export interface DocumentParse {
  readonly document: ReadDocument
  readonly reuse: 'anyone' | 'same caller' | 'nobody'
}

/** An answer that is fine is worth keeping; everything else may be another one a moment later. */
export const KEPT_STATUS = 200

/**
 * To whom a page may be given again, by its status and its server's Cache-Control (RFC 9111, section 5.2.2). A response to
 * a request without cookies is the same for everybody, unless its server says otherwise.
 */
export function reuseOfPage(status: number, cacheControl: string): DocumentParse['reuse'] {
  const directives = new Map(cacheControl.toLowerCase().split(',').map(directiveOf))
  // An answer that must be checked each time is as good as none: the gateway reads anew rather than asks whether to.
  const isStale = isZero(directives.get('s-maxage') ?? directives.get('max-age'))
  if (status !== KEPT_STATUS || isStale || directives.has('no-store') || directives.has('no-cache')) return 'nobody'
  return directives.has('private') ? 'same caller' : 'anyone'
}

function directiveOf(text: string): [name: string, value: string] {
  const [name = '', value = ''] = text.split('=', 2)
  return [name.trim(), value.trim().replaceAll('"', '')]
}

const isZero = (seconds: string | undefined): boolean => seconds !== undefined && /^0+$/.test(seconds)

/** How long one of those who wait does. */
interface Patience {
  /** As the caller asked for it, for words. */
  readonly timeoutMs: number
  /** On the performance clock. */
  readonly deadlineAtMs: number
}

type BeginParse = (call: RequestContext) => Promise<DocumentParse>

/**
 * Readings that are under way: those who ask for the same at the same time share one. It goes on as long as one of them
 * waits, and ends with the last one who leaves.
 */
@Injectable()
export class SharedParses {
  private readonly running = new Map<string, SharedParse>()

  /**
   * Waits for the reading with this key, which `begin` begins when there is none; the call it is given is nobody's. Rejects
   * as the reading does, and for this caller alone with `caller_left` or, after its deadline, with `upstream_timeout`.
   */
  async wait(key: string, call: RequestContext, patience: Patience, begin: BeginParse): Promise<DocumentParse> {
    call.assertPresent()
    const reading = this.running.get(key) ?? this.begin(key, call, begin)
    try {
      return await reading.wait(call, patience)
    } finally {
      noteWork(reading.call, call)
    }
  }

  private begin(key: string, first: RequestContext, begin: BeginParse): SharedParse {
    const { caller, memory, method, path, requestId, trace } = first
    const call = new RequestContext(requestId, method, path, performance.now())
    call.caller = caller
    call.memory = memory?.fork()
    // Its upstream belongs to the trace of whoever asked first.
    call.trace = trace
    const reading = new SharedParse(call, begin, () => {
      if (this.running.get(key) === reading) this.running.delete(key)
    })
    this.running.set(key, reading)
    return reading
  }
}

class SharedParse {
  private waiting = 0
  private readonly outcome: Promise<DocumentParse>

  constructor(
    readonly call: RequestContext,
    begin: BeginParse,
    private readonly close: () => void,
  ) {
    this.outcome = begin(call).finally(() => {
      close()
      call.memory?.close()
    })
    // When everybody has left, nobody hears how it ends.
    this.outcome.catch(() => undefined)
  }

  wait({ disconnect: departure }: RequestContext, { timeoutMs, deadlineAtMs }: Patience): Promise<DocumentParse> {
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
      const forget = departure.onAbort(() => {
        leave(clientDisconnected())
      })
      this.outcome.then(resolve, reject).finally(settle)
    })
  }

  /** Nobody may join a reading that is being ended. */
  private abandon(): void {
    this.close()
    this.call.disconnect.abort()
  }
}

/** What the log line of a caller says about work that was shared. */
function noteWork({ log: { channelId, fetched, tried } }: RequestContext, to: RequestContext): void {
  to.log.tried.push(...tried)
  to.log.fetched = fetched
  if (channelId !== undefined) to.log.channelId = channelId
}

const late = (timeoutMs: number): GatewayError =>
  new GatewayError('upstream_timeout', `The document could not be read within ${Math.round(timeoutMs)} ms.`)

/** What an entry takes beside its texts: the objects that hold them. Estimated. */
const ENTRY_BYTES = 1024

type Entries = LRUCache<string, ReadDocument>

/**
 * Results of this process, for a while and as many as fit: those for everybody under what was read, others also under who
 * asked. A new configuration begins with none, as it may forbid what was read before, or give a key's id to somebody else.
 */
@Injectable()
export class DocumentCache {
  private entries: Entries | undefined

  constructor(store: ConfigStore) {
    this.entries = entriesFor(store.current.documents)
    store.onChange((next) => {
      this.entries = entriesFor(next.documents)
    })
  }

  /** What was read before and may be given to this caller; undefined when there is nothing. */
  find(identity: string, owner: string): ReadDocument | undefined {
    return this.entries?.get(sharedKey(identity)) ?? this.entries?.get(ownKey(identity, owner))
  }

  /**
   * For a reading that begins now: the way to keep its result. What was begun under an earlier configuration is kept
   * nowhere.
   */
  begin(identity: string, owner: string): (reading: DocumentParse) => void {
    const { entries } = this
    return ({ document, reuse }) => {
      // What is known otherwise from now on must not come back.
      entries?.delete(sharedKey(identity))
      entries?.delete(ownKey(identity, owner))
      if (reuse === 'anyone') entries?.set(sharedKey(identity), document)
      if (reuse === 'same caller') entries?.set(ownKey(identity, owner), document)
    }
  }
}

const sharedKey = (identity: string): string => `anyone ${identity}`
const ownKey = (identity: string, owner: string): string => `only ${owner} ${identity}`

function entriesFor({ cacheMs, cacheBytes }: DocumentsSection): Entries | undefined {
  if (cacheMs === 0) return undefined
  return new LRUCache({ ttl: cacheMs, maxSize: cacheBytes, maxEntrySize: cacheBytes, sizeCalculation: sizeOf })
}

function sizeOf({ metadata, content }: ReadDocument, key: string): number {
  const texts = Object.values(metadata).reduce<number>((sum, value) => sum + String(value).length, key.length)
  // Two bytes for each character of a text, which is what most of them take.
  return ENTRY_BYTES + content.length + 2 * texts
}
