import { describe, expect, it } from '@jest/globals'
import { leftovers } from './mixed/leftovers.js'
import type { Holdings } from './mixed/process-samples.js'
import { SOCKET_GROUPS, type SocketCounts, type SocketGroup } from './mixed/socket-counts.js'

const NONE = Object.fromEntries(SOCKET_GROUPS.map((group) => [group, 0])) as SocketCounts
const holding = (sockets: Partial<SocketCounts>, timers = 3): Holdings => ({
  connections: 0,
  sockets: { ...NONE, listening: 2, own: 3, redis: 1, ...sockets },
  timers,
})
const BEFORE = holding({ store: 1 })
const POOLS = { upstreams: 24, store: 10 }

describe('What a gateway holds at rest', () => {
  it('is nothing more than before, or what its pools may keep', () => {
    expect(leftovers(BEFORE, BEFORE, POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({ store: 11, upstreams: 24, own: 7 }), POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({ store: 0, own: 0 }, 0), POOLS)).toEqual([])
  })

  it.each<readonly [SocketGroup, number]>([
    ['listening', 2],
    ['callers', 0],
    ['scrapes', 0],
    ['upstreams', 24],
    ['store', 11],
    ['redis', 1],
    ['collector', 0],
    ['others', 0],
    ['own', 7],
    ['unknown', 0],
  ])('is too much with a single socket (%s) beyond %d', (group, most) => {
    expect(leftovers(BEFORE, holding({ [group]: most }), POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({ [group]: most + 1 }), POOLS)).toEqual([
      `${most + 1} sockets (${group}), at most ${most} explained`,
    ])
  })

  it('is too much with a connection to an upstream that is gone', () => {
    expect(leftovers(BEFORE, holding({ upstreams: 1 }), { upstreams: 0, store: 10 })).toHaveLength(1)
  })

  it('is too much with a single timer beyond those before the first call', () => {
    expect(leftovers(BEFORE, holding({}, 3), POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({}, 4), POOLS)).toEqual(['4 timers, at most 3 explained'])
  })

  it('may have a timer for each connection that the store has more, and no other', () => {
    expect(leftovers(BEFORE, holding({ store: 3 }, 5), POOLS)).toEqual([])
    expect(leftovers(BEFORE, holding({ store: 3 }, 6), POOLS)).toEqual(['6 timers, at most 5 explained'])
    expect(leftovers(BEFORE, holding({ store: 3 }, 5), { upstreams: 0, store: 0 })).toHaveLength(2)
  })
})
