import type { RawObject } from '../../core/json-object.js'

/** What GA has no place for, in the caller's spelling (JSON text), to be said back to it. */
export interface CallersWords {
  readonly modalities?: string
  readonly temperature?: string
}

/** How many responses or items may be under way before the oldest is forgotten; a real session has one or two. */
const MAXIMUM_OPEN = 16

/** Longer spellings are not kept; the other dialect's own words are said instead. */
const MAXIMUM_KEPT_BYTES = 64

/** The handful of facts a translated session needs to remember; bounded, however long the session. */
export class SessionMemory {
  private words: CallersWords = {}
  private nextResponse: CallersWords = {}
  private readonly responses = new Map<string, CallersWords>()
  private readonly openItems = new Map<string, string>()

  get session(): CallersWords {
    return this.words
  }

  sessionUpdated(session: RawObject): void {
    this.words = { ...this.words, ...wordsOf(session) }
  }

  responseAsked(response: RawObject | undefined): void {
    this.nextResponse = response === undefined ? {} : wordsOf(response)
  }

  /** An error may be the answer to a `response.create`: its words must not be taken for the next response's. */
  failed(): void {
    this.nextResponse = {}
  }

  /** The words for a response that begins; the caller's own if it asked for one. */
  responseBegun(id: string): CallersWords {
    const words = { ...this.words, ...this.nextResponse }
    this.nextResponse = {}
    keep(this.responses, id, words)
    return words
  }

  responseEnded(id: string): CallersWords {
    const words = this.responses.get(id) ?? this.words
    this.responses.delete(id)
    return words
  }

  /** An item of the conversation that is not complete; `previousItemId` as JSON text. */
  itemOpened(id: string, previousItemId: string): void {
    keep(this.openItems, id, previousItemId)
  }

  /** The `previous_item_id` of an item that was opened here, else `undefined`. */
  itemClosed(id: string): string | undefined {
    const previousItemId = this.openItems.get(id)
    this.openItems.delete(id)
    return previousItemId
  }
}

function keep<Fact>(facts: Map<string, Fact>, id: string, fact: Fact): void {
  facts.delete(id)
  facts.set(id, fact)
  const [oldest] = facts.keys()
  if (facts.size > MAXIMUM_OPEN && oldest !== undefined) facts.delete(oldest)
}

function wordsOf(object: RawObject): CallersWords {
  const modalities = spelling(object, 'modalities')
  const temperature = spelling(object, 'temperature')
  return { ...(modalities !== undefined && { modalities }), ...(temperature !== undefined && { temperature }) }
}

/** A copy: a part of a frame would keep the whole frame alive. */
function spelling(object: RawObject, name: string): string | undefined {
  const value = object.get(name)
  if (value === undefined || value.length > MAXIMUM_KEPT_BYTES) return undefined
  const text = value.toString('latin1')
  return text === 'null' ? undefined : text
}
