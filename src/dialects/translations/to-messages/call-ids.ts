import { messagesToolId } from '../tool-ids.js'

/** Ids of calls, and of what came back for them in the same order: upstreams refuse one that two calls of a conversation have. */
export class CallIds {
  private readonly uses = new Map<string, number>()

  /** The upstream's id for the next call with this id of the caller. */
  next(id: string): string {
    const use = this.uses.get(id) ?? 0
    this.uses.set(id, use + 1)
    // Some upstreams number the calls of each turn from 0: a later one gets an id with the number of its use.
    return messagesToolId(use === 0 ? id : `${id} ${use}`)
  }
}
