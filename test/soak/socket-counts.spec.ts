import { describe, expect, it } from '@jest/globals'
import { countSockets, type SocketGroup } from './mixed/socket-counts.js'

const TCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 20 4 30 10 -1
   2: 0100007F:C350 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 103 1 0 20 4 30 10 -1
   3: 0100007F:C351 0100007F:270F 08 00000000:00000000 00:00000000 00000000     0        0 104 1 0 20 4 30 10 -1
   4: 0100007F:C352 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 999 1 0 20 4 30 10 -1
`
const UNIX = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000003 00000000 00000000 0001 03 105
0000000000000000: 00000003 00000000 00000000 0001 03 106 /run/somewhere
`
const PEERS = {
  local: new Map<number, SocketGroup>([[8080, 'callers']]),
  remote: new Map<number, SocketGroup>([[5432, 'store']]),
}

describe('The sockets of a process', () => {
  it('are told apart by the ports they lead from and to, and those of other processes are not counted', () => {
    const open = ['socket:[101]', 'socket:[102]', 'socket:[103]', 'socket:[104]', 'socket:[105]', 'socket:[106]']
    expect(countSockets(open, { tcp: TCP, unix: UNIX }, PEERS)).toEqual({
      ...{ listening: 1, callers: 1, store: 1, others: 1, own: 2 },
      ...{ scrapes: 0, upstreams: 0, redis: 0, collector: 0, unknown: 0 },
    })
  })

  it('are unknown where no table has them, and what is no socket is left out', () => {
    const counts = countSockets(['socket:[7]', '/dev/null', 'pipe:[101]'], { tcp: TCP, unix: UNIX }, PEERS)
    expect(counts).toMatchObject({ unknown: 1, listening: 0 })
  })
})
