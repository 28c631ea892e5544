import { Injectable } from '@nestjs/common'
import { LRUCache } from 'lru-cache'
import { ConfigStore } from '../config/config-store.js'
import type { DocumentsSection } from '../config/settings.js'
import { GatewayError } from '../core/errors.js'
import { RequestContext, clientDisconnected } from '../core/request-context.js'
import type { ReadDocument } from '../providers/contract.js'

/** A parsed document, and the callers that may receive it from the cache. */
export interface DocumentParse {
  readonly document: ReadDocument
  readonly reuse: 'anyone' | 'same caller' | 'none'
}

/** Only successful responses are cached; others may change soon. */
export const KEPT_STATUS = 200

/**
 * Callers that may receive a cached page, by its status and `Cache-Control` (RFC 9111, section 5.2.2). A response to a
 * request without cookies is the same for all callers, unless its server says otherwise.
 */
export function reuseOfPage(status: number, cacheControl: string): DocumentParse['reuse'] {
  const directives = new Map(cacheControl.toLowerCase().split(',').map(directiveOf))
  // `no-cache` is treated like `no-store`: the gateway does not revalidate.
  const isStale = isZero(directives.get('s-maxage') ?? directives.get('max-age'))
  if (status !== KEPT_STATUS || isStale || directives.has('no-store') || directives.has('no-cache')) return 'none'
  return directives.has('private') ? 'same caller' : 'anyone'
}

function directiveOf(text: string): [name: string, value: string] {
  const [name = '', value = ''] = text.split('=', 2)
  return [name.trim(), value.trim().replaceAll('"', '')]
}

const isZero = (seconds: string | undefined): boolean => seconds !== undefined && /^0+$/.test(seconds)

/** How long one caller waits for a shared read. */
interface WaitOptions {
  /** Requested timeout, for the message. */
  readonly timeoutMs: number
  /** Performance clock. */
  readonly deadlineAtMs: number
}

type BeginParse = (call: RequestContext) => Promise<DocumentParse>

/**
 * Reads in progress. Simultaneous requests for the same document share one read, which is aborted when the last of them
 * disconnects.
 */
@Injectable()
export class SharedParses {
  private readonly running = new Map<string, SharedParse>()

  /**
   * Waits for the read with this key; `begin` starts one if there is none, with a request context of its own. Rejects as the
   * read does, and for this caller alone with `caller_left`, or with `upstream_timeout` after its deadline.
   */
  async wait(key: string, call: RequestContext, options: WaitOptions, begin: BeginParse): Promise<DocumentParse> {
    call.assertPresent()
    const reading = this.running.get(key) ?? this.begin(key, call, begin)
    try {
      return await reading.wait(call, options)
    } finally {
      copyLog(reading.call, call)
    }
  }

  private begin(key: string, first: RequestContext, begin: BeginParse): SharedParse {
    const { caller, memory, method, path, requestId, trace } = first
    const call = new RequestContext(requestId, method, path, performance.now())
    call.caller = caller
    call.memory = memory?.fork()
    // The upstream request belongs to the trace of the first request.
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
    // Without waiting requests a rejection must not be unhandled.
    this.outcome.catch(() => undefined)
  }

  wait({ disconnect }: RequestContext, { timeoutMs, deadlineAtMs }: WaitOptions): Promise<DocumentParse> {
    this.waiting++
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        unsubscribe()
      }
      const leave = (error: GatewayError): void => {
        settle()
        reject(error)
        this.waiting--
        if (this.waiting === 0) this.abandon()
      }
      const timer = setTimeout(() => {
        leave(timedOut(timeoutMs))
      }, deadlineAtMs - performance.now())
      const unsubscribe = disconnect.onAbort(() => {
        leave(clientDisconnected())
      })
      this.outcome.then(resolve, reject).finally(settle)
    })
  }

  /** Removes a read that is being aborted, so that no request joins it. */
  private abandon(): void {
    this.close()
    this.call.disconnect.abort()
  }
}

/** Log fields of a shared read, copied to each of its requests. */
function copyLog({ log: { channelId, fetched, attempts } }: RequestContext, to: RequestContext): void {
  to.log.attempts.push(...attempts)
  to.log.fetched = fetched
  if (channelId !== undefined) to.log.channelId = channelId
}

const timedOut = (timeoutMs: number): GatewayError =>
  new GatewayError('upstream_timeout', `The document could not be read within ${Math.round(timeoutMs)} ms.`)

/** Estimated bytes of an entry's objects, besides its texts. */
const ENTRY_BYTES = 1024

type Entries = LRUCache<string, ReadDocument>

/**
 * Cache of results in this process, bounded by age and size. Shared results are stored by document, private ones by document
 * and caller. A new configuration clears it, because it may forbid a URL or give a key's id to another caller.
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

  /** The cached result for this caller; undefined without one. */
  find(identity: string, owner: string): ReadDocument | undefined {
    return this.entries?.get(sharedKey(identity)) ?? this.entries?.get(ownKey(identity, owner))
  }

  /**
   * Returns the function that stores the result of a read that starts now. A result that arrives after a change of the
   * configuration is dropped.
   */
  begin(identity: string, owner: string): (reading: DocumentParse) => void {
    const { entries } = this
    return ({ document, reuse }) => {
      // Either entry of the document is outdated now.
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
  // Two bytes for each character: most texts are stored as UTF-16.
  return ENTRY_BYTES + content.length + 2 * (key.length + JSON.stringify(metadata).length)
}
