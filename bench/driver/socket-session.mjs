import { connect } from 'node:net'
import { APPEND, AUDIO_BYTES, FrameCheck, isDelta, SESSION_UPDATE, writeNumber } from '../realtime-wire.mjs'
import { CALLER_KEY, MODELS } from '../wire.mjs'

/** One buffer for all sessions: a read is handled before the next one starts. */
const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)
const HEAD_END = '\r\n\r\n'

const OPCODE = { text: 1, close: 8, ping: 9, pong: 10 }
const FINAL = 0x80
const MASKED = 0x80
/** RFC 6455 requires a new mask for each frame; unmasking costs the receiver the same for any mask. */
const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d])

/** A whole frame of a client. */
function masked(opcode, payload) {
  const head = payload.length < 126 ? [FINAL | opcode, MASKED | payload.length] : [FINAL | opcode, MASKED | 126, 0, 0]
  const frame = Buffer.concat([Buffer.from(head), MASK, payload])
  if (payload.length >= 126) frame.writeUInt16BE(payload.length, 2)
  const start = frame.length - payload.length
  for (let at = start; at < frame.length; at++) frame[at] ^= MASK[(at - start) & 3]
  return frame
}

const APPEND_FRAME = masked(OPCODE.text, APPEND.bytes)
const APPEND_START = APPEND_FRAME.length - APPEND.bytes.length
const NUMBER_AT = APPEND_START + APPEND.at
const NUMBER_MASK = (at) => MASK[(at - APPEND_START) & 3]
/** Only the head of an append differs from frame to frame. */
const HEAD_BYTES = NUMBER_AT + 8
const APPEND_TAIL = APPEND_FRAME.subarray(HEAD_BYTES)

function upgradeRequest(port, dialect) {
  return [
    `GET /v1/realtime?model=${MODELS.realtime} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: YmVuY2hiZW5jaGJlbmNoMQ==',
    `Authorization: Bearer ${CALLER_KEY}`,
    ...(dialect === 'beta' ? ['OpenAI-Beta: realtime=v1'] : []),
  ].join('\r\n')
}

/** A realtime client on a raw socket that sends numbered audio and checks the received audio. */
export class SocketSession {
  sent = 0
  #socket
  #check
  #partial = Buffer.alloc(0)
  #isUpgraded = false
  #isReady = false
  #onReady

  /** @param {{ port: number, dialect: 'ga' | 'beta', onAudio: () => void, onError: (error: Error) => void }} options */
  constructor({ port, dialect, onAudio, onError }) {
    Object.assign(this, { dialect, onAudio, onError })
    this.#check = new FrameCheck(isDelta(dialect))
    /** Whether it is open; false: the gateway was busy, and asks for another try. */
    this.opened = new Promise((resolve) => (this.#onReady = resolve))
    const onread = { buffer: READ_BUFFER, callback: (length, buffer) => this.#read(length, buffer) }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    this.#socket.write(upgradeRequest(port, dialect) + HEAD_END)
    this.#socket.on('error', (error) => this.onError(error))
    this.#socket.on('close', () => this.onError(new Error('a session closed')))
  }

  get received() {
    return this.#check.frames
  }

  /** Audio frames that were not the next ones, and ones with other bytes than they should have. */
  get faults() {
    const { outOfOrder, changed } = this.#check
    return { outOfOrder, changed }
  }

  sendAudio() {
    const head = Buffer.from(APPEND_FRAME.subarray(0, HEAD_BYTES))
    writeNumber(head, NUMBER_AT, this.sent++, NUMBER_MASK)
    this.#socket.cork()
    this.#socket.write(head)
    this.#socket.write(APPEND_TAIL)
    this.#socket.uncork()
  }

  /** Resolves when the other side has closed the connection after its answer to the close. */
  close() {
    this.onError = () => undefined
    const closed = new Promise((resolve) => this.#socket.once('close', resolve))
    this.#socket.write(masked(OPCODE.close, Buffer.from([0x03, 0xe8])))
    return closed
  }

  #read(length, buffer) {
    try {
      const bytes = this.#partial.length === 0 ? buffer.subarray(0, length) : this.#withPartial(buffer, length)
      const start = this.#isUpgraded ? 0 : this.#readHead(bytes)
      const rest = bytes.subarray(this.#isUpgraded ? this.#readFrames(bytes, start) : 0)
      this.#partial = rest.length === 0 ? rest : Buffer.from(rest)
    } catch (error) {
      this.onError(error)
    }
    return true
  }

  #withPartial(buffer, length) {
    return Buffer.concat([this.#partial, buffer.subarray(0, length)])
  }

  #readHead(bytes) {
    const end = bytes.indexOf(HEAD_END)
    if (end === -1) return 0
    const head = bytes.toString('latin1', 0, end)
    if (head.startsWith('HTTP/1.1 503 ')) {
      this.onError = () => undefined
      this.#socket.destroy()
      this.#onReady(false)
      return 0
    }
    if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(`the upgrade was refused: ${bytes}`)
    this.#isUpgraded = true
    return end + HEAD_END.length
  }

  /** Reads whole frames, gives where the first incomplete one begins. */
  #readFrames(bytes, start) {
    let at = start
    while (at + 2 <= bytes.length) {
      const short = bytes[at + 1]
      if (short === 126 && at + 4 > bytes.length) break
      if (short > 126) throw new Error(`a frame of this length was not expected: ${short}`)
      const payload = at + (short === 126 ? 4 : 2)
      const end = payload + (short === 126 ? bytes.readUInt16BE(at + 2) : short)
      if (end > bytes.length) break
      this.#take(bytes[at], bytes, payload, end)
      at = end
    }
    return at
  }

  #take(first, bytes, start, end) {
    if (first === (FINAL | OPCODE.ping)) {
      this.#socket.write(masked(OPCODE.pong, bytes.subarray(start, end)))
    } else if (first === (FINAL | OPCODE.text) && end - start >= AUDIO_BYTES) {
      this.#check.take(bytes, start, end)
      this.onAudio()
    } else if (first === (FINAL | OPCODE.text)) {
      this.#takeEvent(JSON.parse(bytes.toString('utf8', start, end)))
    } else if (first === (FINAL | OPCODE.close)) {
      this.onError(
        new Error(`a session was closed: ${bytes.readUInt16BE(start)} ${bytes.toString('utf8', start + 2, end)}`),
      )
    } else throw new Error(`an unexpected frame: ${first}`)
  }

  /** A GA client shows its dialect by its first update; a beta client has said it in the handshake. */
  #takeEvent(event) {
    if (event.type === 'error') throw new Error(`an error event: ${JSON.stringify(event.error)}`)
    const isCreated = event.type === 'session.created'
    if (isCreated && this.dialect === 'ga') this.#socket.write(masked(OPCODE.text, Buffer.from(SESSION_UPDATE)))
    else if ((isCreated || event.type === 'session.updated') && !this.#isReady) {
      this.#isReady = true
      this.#onReady(true)
    }
  }
}
