import { randomBytes } from 'node:crypto'

/** Random per process and counted within it, as the ids of requests: a random root for each answer takes a tenth of its translation. */
const PROCESS_ROOT = randomBytes(18).toString('hex')
let roots = 0

/** Ids that the gateway makes for the parts of one answer. With their prefix they have at most 64 characters: more is refused by upstreams. */
export class MadeIds {
  private readonly root = PROCESS_ROOT + hex(++roots, 12)

  /** `number` tells parts with the same prefix apart. */
  id(prefix: string, number: number): string {
    return `${prefix}_${this.root}${hex(number, 4)}`
  }
}

const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, '0')

/** Ids of the calls of one answer, by which a client brings their results: some upstreams leave them out, or give several calls the same. */
export class AnswerCallIds {
  private readonly given = new Set<string>()

  constructor(private readonly made = new MadeIds()) {}

  /** Of the next call; `own` is what its upstream gave it. */
  next(own: string | undefined, index: number): string {
    const id = own === undefined || this.given.has(own) ? this.made.id('call', index + 1) : own
    this.given.add(id)
    return id
  }
}
