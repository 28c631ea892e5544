const FORMAT_CHUNK_BYTES = 16
const PCM_FORMAT_TAG = 1
const BYTES_PER_SAMPLE = 2
/** What a streaming writer puts where the length is not known yet. */
const UNKNOWN_SIZE = 0xffffffff

/** The 44 bytes before the samples of a streamed mono 16-bit WAV file; both sizes say "unknown" (FF FF FF FF). */
export function streamedWavHeader(sampleRate: number): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(UNKNOWN_SIZE, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(FORMAT_CHUNK_BYTES, 16)
  header.writeUInt16LE(PCM_FORMAT_TAG, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(sampleRate, 24)
  header.writeUInt32LE(sampleRate * BYTES_PER_SAMPLE, 28)
  header.writeUInt16LE(BYTES_PER_SAMPLE, 32)
  header.writeUInt16LE(BYTES_PER_SAMPLE * 8, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(UNKNOWN_SIZE, 40)
  return header
}
