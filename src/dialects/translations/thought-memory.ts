import type { Seals, Thoughts } from '../translator.js'

/** Longer thoughts of one turn are not remembered. */
const LONGEST_TURN_CHARACTERS = 65_536
/** Of all that is remembered, with its keys. */
const MAXIMUM_CHARACTERS = 64 * 1024 * 1024
const REMEMBERED_MS = 60 * 60 * 1000

interface Remembered {
  readonly sealed: string
  readonly untilMs: number
}

/**
 * What models thought before they called tools, sealed, for an hour: clients of other dialects drop it, and some upstreams want it back.
 * The least recently used go first. Lost with the process; a call without its thoughts is answered without thinking.
 */
export class ThoughtMemory {
  private readonly entries = new Map<string, Remembered>()
  private characters = 0

  constructor(
    private readonly now: () => number = Date.now,
    private readonly maximumCharacters = MAXIMUM_CHARACTERS,
  ) {}

  /** Those of one owner at one upstream, to be recalled by the same alone; sealed by the owner's `seals`. */
  of(owner: string, seals: Pick<Seals, 'seal' | 'open'>): Thoughts {
    const key = (toolCallId: string): string => `${owner} ${toolCallId}`
    return {
      remember: (toolCallId, blocks) => {
        if (blocks.length <= LONGEST_TURN_CHARACTERS) this.put(key(toolCallId), seals.seal(blocks))
      },
      recall: (toolCallId) => {
        const sealed = this.take(key(toolCallId))
        return sealed === undefined ? undefined : seals.open(sealed)
      },
    }
  }

  private put(key: string, sealed: string): void {
    this.forget(key)
    this.entries.set(key, { sealed, untilMs: this.now() + REMEMBERED_MS })
    this.characters += key.length + sealed.length
    for (const oldest of this.entries.keys()) {
      if (this.characters <= this.maximumCharacters) return
      this.forget(oldest)
    }
  }

  private take(key: string): string | undefined {
    const found = this.entries.get(key)
    if (found === undefined) return undefined
    this.entries.delete(key)
    // Used: it goes last.
    this.entries.set(key, found)
    if (found.untilMs > this.now()) return found.sealed
    this.forget(key)
    return undefined
  }

  private forget(key: string): void {
    const found = this.entries.get(key)
    if (found === undefined) return
    this.entries.delete(key)
    this.characters -= key.length + found.sealed.length
  }
}
