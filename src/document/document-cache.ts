import { Injectable } from '@nestjs/common'
import { LRUCache } from 'lru-cache'
import { ConfigStore } from '../config/config-store.js'
import type { DocumentsSection } from '../config/settings.js'
import type { ReadDocument } from '../providers/contract.js'
import type { DocumentReading } from './document-reading.js'

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
  begin(identity: string, owner: string): (reading: DocumentReading) => void {
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
