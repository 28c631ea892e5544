import { undecodable, type AudioFacts } from './audio-facts.js'
import type { ByteWindow } from './byte-window.js'

const PROGRAM_SCAN_BYTES = 64 * 1024
const PACK_START = Buffer.from([0, 0, 1, 0xba])
const START_CODE = Buffer.from([0, 0, 1])

export function isMpegProgram(head: Buffer): boolean {
  return head.subarray(0, 4).equals(PACK_START)
}

/** A program stream (`.mpeg`): looks for a packet of MPEG audio among its first ones. */
export async function inspectMpegProgram(bytes: ByteWindow): Promise<AudioFacts> {
  const area = await bytes.bytes(0, PROGRAM_SCAN_BYTES)
  for (let at = 0; at !== -1; at = area.indexOf(START_CODE, at + 3)) {
    const stream = area[at + 3] ?? 0
    // 0xC0 to 0xDF carry MPEG audio, 0xBD other kinds of sound.
    if ((stream >= 0xc0 && stream <= 0xdf) || stream === 0xbd) {
      return { container: 'mpeg-program', extension: 'mpeg', contentType: 'audio/mpeg' }
    }
  }
  throw undecodable('the MPEG file has no audio stream')
}
