import type { Thoughts } from '../translator.js'

/** Longer thoughts of one turn are not remembered. */
const LONGEST_TURN_CHARACTERS = 65_536
const MAXIMUM_CHARACTERS = 64 * 1024 * 1024
const REMEMBERED_MS = 60 * 60 * 1000

interface Remembered {
  readonly blocks: string
  readonly untilMs: number
}

/**
 * What models thought before they called tools, for an hour: clients of other dialects drop it, and some upstreams want it back. The
 * least recently used go first. Lost with the process; a call without its thoughts is answered without thinking.
 */
export class ThoughtMemory {
  private readonly entries = new Map<string, Remembered>()
  private characters = 0

  constructor(
    private readonly now: () => number = Date.now,
    private readonly maximumCharacters = MAXIMUM_CHARACTERS,
  ) {}

  /** Those of one owner at one upstream, to be recalled by the same alone. */
  of(owner: string): Thoughts {
    const key = (toolCallId: string): string => `${owner} ${toolCallId}`
    return {
      remember: (toolCallId, blocks) => {
        this.put(key(toolCallId), blocks)
      },
      recall: (toolCallId) => this.take(key(toolCallId)),
    }
  }

  private put(key: string, blocks: string): void {
    if (blocks.length > LONGEST_TURN_CHARACTERS) return
    this.forget(key)
    this.entries.set(key, { blocks, untilMs: this.now() + REMEMBERED_MS })
    this.characters += key.length + blocks.length
    for (const oldest of this.entries.keys()) {
      if (this.characters <= this.maximumCharacters) return
      this.forget(oldest)
    }
  }

  private take(key: string): string | undefined {
    const found = this.entries.get(key)
    if (found === undefined) return undefined
    this.forget(key)
    if (found.untilMs <= this.now()) return undefined
    // Used: it goes last.
    this.entries.set(key, found)
    this.characters += key.length + found.blocks.length
    return found.blocks
  }

  private forget(key: string): void {
    const found = this.entries.get(key)
    if (found === undefined) return
    this.entries.delete(key)
    this.characters -= key.length + found.blocks.length
  }
}
