import type { Holdings } from './process-samples.js'
import { SOCKET_GROUPS, type SocketGroup } from './socket-counts.js'

/** What a gateway keeps open for later, so that it need not be there before the first call. */
export interface Pools {
  /** Calls that were under way at once: so many connections to upstreams can be idle. 0 once the upstreams are gone. */
  readonly upstreams: number
  /** Connections to the store at once, as configured. */
  readonly store: number
}

/**
 * To a process that reads documents: its pipe and its standard error. As many as `documents.processes` says stay ready once
 * a document has come.
 */
const OWN = 2 * 2

/** How many more of a group there may be than before the first call. Whatever is not named: none. */
const allowances = ({ upstreams, store }: Pools): Partial<Record<SocketGroup, number>> => ({
  upstreams,
  store,
  own: OWN,
})

/** What a gateway that nobody asks for anything holds beyond what it held before the first call, in words. */
export function leftovers(before: Holdings, now: Holdings, pools: Pools): readonly string[] {
  const { store } = pools
  const allowed = allowances(pools)
  const sockets = SOCKET_GROUPS.flatMap((group) => {
    const most = before.sockets[group] + (allowed[group] ?? 0)
    return now.sockets[group] <= most ? [] : [`${now.sockets[group]} sockets (${group}), at most ${most} explained`]
  })
  // Each idle connection of the store's pool has one, for its end; those beyond the pool are told of above.
  const mostTimers = before.timers + Math.min(store, Math.max(0, now.sockets.store - before.sockets.store))
  const timers = now.timers <= mostTimers ? [] : [`${now.timers} timers, at most ${mostTimers} explained`]
  return [...sockets, ...timers]
}
