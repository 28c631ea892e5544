import { createHash } from 'node:crypto'
import { toFile } from 'openai'

import { P1_KEY, P1SimulatorLab } from './p1-simulator-lab.js'

/** 24 kHz mono 16-bit, sizes as in a streamed file. */
export function wav(seconds: number): Buffer {
  const header = Buffer.from('RIFF....WAVEfmt ....................data....', 'latin1')
  header.writeUInt32LE(0xffffffff, 4)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(24_000, 24)
  header.writeUInt32LE(48_000, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.writeUInt32LE(0xffffffff, 40)
  return Buffer.concat([header, Buffer.alloc(Math.round(seconds * 48_000), 7)])
}

export const clip = wav(1.7)
export const checksum = createHash('sha1').update(clip).digest('hex').slice(0, 12)
/** What is heard in the clip. */
export const text = `The audio has checksum ${checksum}. It lasts 1.70 seconds.`
export const file = (bytes = clip): Promise<File> => toFile(bytes, 'a.wav')

/** The P1 simulator, to be asked for transcriptions. */
export class TranscriptionSimulatorLab extends P1SimulatorLab {
  readonly post = (parts: Record<string, string | Blob>, path = 'transcriptions'): Promise<Response> => {
    const form = new FormData()
    for (const [name, value] of Object.entries(parts)) form.append(name, value)
    return fetch(`${this.simulator.url}/v1/audio/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${P1_KEY}` },
      body: form,
    })
  }
}
