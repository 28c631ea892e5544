import { Socket } from 'node:net'

type Write = Socket['_write']
type WriteAll = NonNullable<Socket['_writev']>
type Destroy = Socket['destroy']

const methodOf = (name: '_write' | '_writev' | 'destroy'): unknown => Reflect.get(Socket.prototype, name)
const writeNow = methodOf('_write') as Write
const writeAllNow = methodOf('_writev') as WriteAll
const destroyNow = methodOf('destroy') as Destroy

const DUE = Symbol('due write')

/** With the write that it makes at the end of the turn. */
type DeferredSocket = Socket & { [DUE]?: (() => void) | undefined }

/** A stream makes one write, and then one of all that was written meanwhile. */
const WRITES_OF_A_TURN = 2

/** Sockets that have a write due at the end of this turn of the event loop. */
let writers: DeferredSocket[] = []

function writeDue(socket: DeferredSocket): void {
  const write = socket[DUE]
  socket[DUE] = undefined
  write?.()
}

/** Makes the writes of a turn. What a socket writes after its second waits for the next turn: one that writes whenever it can would never end this one. */
function endTurn(): void {
  for (let count = 0; count < WRITES_OF_A_TURN; count++) {
    const due = writers
    writers = []
    for (const socket of due) writeDue(socket)
  }
}

function defer(socket: DeferredSocket, write: () => void): void {
  socket[DUE] = write
  if (writers.push(socket) === 1) setImmediate(endTurn)
}

const deferWrite: Write = function (this: Socket, chunk: Buffer | string, encoding, callback) {
  // A response of Node ends with an empty write, to learn that all before it has been sent: a stream makes it only then.
  if (chunk.length === 0) {
    callback()
    return
  }
  defer(this, () => {
    writeNow.call(this, chunk, encoding, callback)
  })
}

const deferWriteAll: WriteAll = function (this: Socket, chunks, callback) {
  defer(this, () => {
    writeAllNow.call(this, chunks, callback)
  })
}

/** What was written before is with the kernel, as it is without deferral. */
const destroyWritten: Destroy = function (this: DeferredSocket, error) {
  try {
    for (let count = 0; count < WRITES_OF_A_TURN && !this.destroyed; count++) writeDue(this)
  } finally {
    destroyNow.call(this, error)
  }
  return this
}

/**
 * Has what a socket writes wait until the event loop has served all that had arrived, so that the writes of all sockets follow each
 * other. A write runs through the kernel to the other end and wakes it; amid the work on requests it takes that work out of the
 * processor's caches, and a relayed chat takes half as much time again (docs/decisions/0047). Can be called again.
 */
export function deferWrites(socket: Socket): void {
  socket._write = deferWrite
  socket._writev = deferWriteAll
  socket.destroy = destroyWritten
}
