import { Socket } from 'node:net'

type Write = Socket['_write']
type WriteAll = NonNullable<Socket['_writev']>
type Destroy = Socket['_destroy']

const methodOf = (name: '_write' | '_writev' | '_destroy'): unknown =>
  Object.getOwnPropertyDescriptor(Socket.prototype, name)?.value
const writeNow = methodOf('_write') as Write
const writeAllNow = methodOf('_writev') as WriteAll
const destroyNow = methodOf('_destroy') as Destroy

const DUE = Symbol('due write')

/** A stream makes one write at a time; what comes meanwhile joins its next. */
type DeferredSocket = Socket & { [DUE]?: (() => void) | undefined }

/** In this turn of the event loop. */
let writers: DeferredSocket[] = []

function writeDue(socket: DeferredSocket): void {
  const write = socket[DUE]
  socket[DUE] = undefined
  write?.()
}

function endTurn(): void {
  const due = writers
  writers = []
  for (const socket of due) writeDue(socket)
}

function defer(socket: DeferredSocket, write: () => void): void {
  socket[DUE] = write
  if (writers.push(socket) === 1) setImmediate(endTurn)
}

const deferWrite: Write = function (this: Socket, chunk: Buffer | string, encoding, callback) {
  // By such a write a response of Node learns that it has been sent.
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
const destroyWritten: Destroy = function (this: Socket, error, callback) {
  writeDue(this)
  destroyNow.call(this, error, callback)
}

/**
 * Has what a socket writes wait until the event loop has served all that had arrived, so that the writes of all sockets follow each
 * other. A write runs through the kernel to the other end and wakes it; amid the work on requests, each takes that work out of the
 * processor's caches, and a relayed chat half as much time again (docs/decisions/0047). Can be called again.
 */
export function deferWrites(socket: Socket): void {
  socket._write = deferWrite
  socket._writev = deferWriteAll
  socket._destroy = destroyWritten
}
