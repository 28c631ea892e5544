/** Whom a socket of the gateway is for. */
export const SOCKET_GROUPS = [
  /** Its ports. */
  'listening',
  'callers',
  'scrapes',
  'upstreams',
  'store',
  'redis',
  'collector',
  /** To addresses that nobody here has. */
  'others',
  /** Local ones: of its standard streams, and to processes that it has started. */
  'own',
  /** In no table of the system: made, and not connected, or not closed after its connection was gone. */
  'unknown',
] as const
export type SocketGroup = (typeof SOCKET_GROUPS)[number]
export type SocketCounts = Readonly<Record<SocketGroup, number>>

/** By port: what the gateway listens at, and what it connects to. */
export interface SocketPeers {
  readonly local: ReadonlyMap<number, SocketGroup>
  readonly remote: ReadonlyMap<number, SocketGroup>
}

/** As `/proc/<pid>/net` has them; `tcp` with the lines of both families. */
export interface SocketTables {
  readonly tcp: string
  readonly unix: string
}

const TCP = { local: 1, remote: 2, state: 3, inode: 9 } as const
const UNIX_INODE = 6
const LISTENS = '0A'

/** Sorts what a process has open, named as `/proc/<pid>/fd` does: `socket:[<inode>]`, anything else is left out. */
export function countSockets(targets: readonly string[], tables: SocketTables, peers: SocketPeers): SocketCounts {
  const groups = new Map<string, SocketGroup>()
  for (const columns of rowsOf(tables.unix)) groups.set(columns[UNIX_INODE] ?? '', 'own')
  for (const columns of rowsOf(tables.tcp)) groups.set(columns[TCP.inode] ?? '', groupOf(columns, peers))
  const counts = Object.fromEntries(SOCKET_GROUPS.map((group) => [group, 0])) as Record<SocketGroup, number>
  for (const target of targets) {
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1]
    if (inode !== undefined) counts[groups.get(inode) ?? 'unknown'] += 1
  }
  return counts
}

const rowsOf = (table: string): string[][] => table.split('\n').map((line) => line.trim().split(/\s+/))

function groupOf(columns: readonly string[], { local, remote }: SocketPeers): SocketGroup {
  if (columns[TCP.state] === LISTENS) return 'listening'
  return local.get(portOf(columns[TCP.local])) ?? remote.get(portOf(columns[TCP.remote])) ?? 'others'
}

/** Of `0100007F:1F90`. */
const portOf = (address = ''): number => Number.parseInt(address.split(':')[1] ?? '', 16)
