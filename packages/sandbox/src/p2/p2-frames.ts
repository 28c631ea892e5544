import { isUtf8 } from 'node:buffer'
import { gunzipSync, gzipSync } from 'node:zlib'
import { type JsonObject, parseJsonObject } from '../server/json-value.js'
import type { SocketMessage } from '../server/websocket-session.js'
import { violate } from './p2-errors.js'

/** Version 1 and a header of one word in byte 0; message type and flags in byte 1; serialization, compression in 2. */
const PLAIN_REQUEST = 0x11101000
const GZIP_REQUEST = 0x11101100
const ACKNOWLEDGEMENT = 0x11b00000
const AUDIO_WITH_SEQUENCE = 0x11b10000
const LAST_WITHOUT_SEQUENCE = 0x11b20000
const LAST_WITH_SEQUENCE = 0x11b30000
const FRONT_END = 0x11c01000
const PLAIN_ERROR = 0x11f01000
const GZIP_ERROR = 0x11f01100

const FRAME_HEAD_BYTES = 8
/** More than any request of 1,024 bytes of text can need; a compressed one is not opened beyond it. */
const MAXIMUM_JSON_BYTES = 256 * 1024

/**
 * How the end of the audio is marked: flags 0x3 with the negative sequence (`signed`), flags 0x2 with it (`flagged`), or
 * flags 0x2 without any sequence (`bare`).
 */
export type LastForm = 'signed' | 'flagged' | 'bare'

/** The JSON of a client's full request. Throws P2Rejection for anything but exactly one such frame. */
export function readRequestFrame(message: SocketMessage): JsonObject {
  const frame = message.data
  if (!message.isBinary) violate('a text message instead of a binary frame')
  if (frame.length < FRAME_HEAD_BYTES) violate(`a frame of ${frame.length} bytes`)
  const header = frame.readUInt32BE(0)
  if (header !== PLAIN_REQUEST && header !== GZIP_REQUEST) violate(`frame header ${frame.toString('hex', 0, 4)}`)
  const payload = frame.subarray(FRAME_HEAD_BYTES)
  const size = frame.readUInt32BE(4)
  if (size !== payload.length) violate(`payload size ${size}, but ${payload.length} bytes follow`)
  const json = header === GZIP_REQUEST ? gunzip(payload) : payload
  if (!isUtf8(json)) violate('payload is not UTF-8')
  return parseJsonObject(json) ?? violate('payload is not a JSON object')
}

/** Audio number `sequence`, counted from 1. */
export function audioFrame(sequence: number, audio: Buffer): Buffer {
  return Buffer.concat([words(AUDIO_WITH_SEQUENCE, sequence, audio.length), audio])
}

/** The last frame, which may contain audio itself. `sequence` counts from 1; its negative goes on the wire. */
export function lastFrame(form: LastForm, sequence: number, audio: Buffer): Buffer {
  if (form === 'bare') return Buffer.concat([words(LAST_WITHOUT_SEQUENCE, audio.length), audio])
  const header = form === 'signed' ? LAST_WITH_SEQUENCE : LAST_WITHOUT_SEQUENCE
  return Buffer.concat([words(header, -sequence, audio.length), audio])
}

export function acknowledgementFrame(): Buffer {
  return words(ACKNOWLEDGEMENT, 0)
}

/** Some server versions leave the size out. */
export function bareAcknowledgementFrame(): Buffer {
  return words(ACKNOWLEDGEMENT)
}

export function frontEndFrame(result: JsonObject): Buffer {
  const payload = Buffer.from(JSON.stringify(result))
  return Buffer.concat([words(FRONT_END, payload.length), payload])
}

export function errorFrame(code: number, text: string, compressed: boolean): Buffer {
  const payload = compressed ? gzipSync(text) : Buffer.from(text)
  return Buffer.concat([words(compressed ? GZIP_ERROR : PLAIN_ERROR, code, payload.length), payload])
}

/** An audio frame whose size promises more bytes than follow. */
export function undecodableFrame(): Buffer {
  return Buffer.concat([words(AUDIO_WITH_SEQUENCE, 1, 0x7fffffff), Buffer.from([0xaa, 0xbb])])
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, index) => bytes.writeInt32BE(value | 0, index * 4))
  return bytes
}

function gunzip(payload: Buffer): Buffer {
  try {
    return gunzipSync(payload, { maxOutputLength: MAXIMUM_JSON_BYTES })
  } catch {
    return violate('payload is not gzip')
  }
}
