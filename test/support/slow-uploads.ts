import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connectTo, TEST_KEY } from './gateway.js'
import { fieldPart, MULTIPART, multipartBytes, TRANSCRIPTIONS, wavOf } from './upload-server.js'

/** An upload on a socket of the caller's own, sent piece by piece. */
export interface SlowUpload {
  readonly socket: Socket
  /** What has come back so far. */
  readonly answer: () => string
  /** Resolves when the socket is closed, by whichever side. */
  readonly closed: Promise<void>
  send(piece: Buffer): Promise<void>
}

/** Connects and sends the head. */
export async function openUpload(
  url: string,
  contentLength: number,
  headers: Readonly<Record<string, string>> = {},
  path = TRANSCRIPTIONS,
): Promise<SlowUpload> {
  const socket = connectTo({ url })
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
  })
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      resolve()
    })
  })
  await once(socket, 'connect')
  const all = {
    host: 'gateway',
    authorization: `Bearer ${TEST_KEY}`,
    'content-length': String(contentLength),
    ...MULTIPART,
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return {
    socket,
    answer: () => received,
    closed,
    send: async (piece) => {
      if (!socket.write(piece) && !socket.destroyed) await Promise.race([once(socket, 'drain'), closed])
      await nextTurn()
    },
  }
}

const MARK = Buffer.from('the file goes here')
const FORM = multipartBytes([
  fieldPart('model', 'whisper-1'),
  {
    head: 'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav',
    content: MARK,
  },
])

/** What stands before the file's bytes, and what behind them. */
export const FORM_HEAD = FORM.subarray(0, FORM.indexOf(MARK))
export const FORM_TAIL = FORM.subarray(FORM.indexOf(MARK) + MARK.length)

/** The length of the whole body with a file of this size. */
export const formBytes = (fileBytes: number): number => FORM_HEAD.length + fileBytes + FORM_TAIL.length

const PIECE_BYTES = 65_536

/** Sends a file of this size piece by piece, and goes on however the other side answers, until the socket is closed. */
export async function sendFile(target: SlowUpload, bytes: number): Promise<void> {
  const file = wavOf(Math.min(bytes, PIECE_BYTES))
  await target.send(FORM_HEAD)
  await target.send(file)
  const filler = Buffer.alloc(PIECE_BYTES, 7)
  for (let sent = file.length; sent < bytes && !target.socket.destroyed; sent += filler.length) {
    await target.send(filler.subarray(0, bytes - sent))
  }
  if (!target.socket.destroyed) await target.send(FORM_TAIL)
}
