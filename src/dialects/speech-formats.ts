import type { ByteSink, ByteSource } from '../core/byte-source.js'
import type { GatewayError } from '../core/gateway-error.js'

const SAMPLE_RATE_HZ = 24_000
const BYTES_PER_SAMPLE = 2
const PCM_FORMAT_TAG = 1
const FORMAT_CHUNK_BYTES = 16
/** What a writer puts where the length is not known yet; decoders then read to the end. */
const UNKNOWN_BYTES = 0xffffffff

/** RIFF header of a stream of 24 kHz, 16-bit, mono samples whose length nobody knows yet. */
function streamedHeader(): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(UNKNOWN_BYTES, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(FORMAT_CHUNK_BYTES, 16)
  header.writeUInt16LE(PCM_FORMAT_TAG, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SAMPLE_RATE_HZ, 24)
  header.writeUInt32LE(SAMPLE_RATE_HZ * BYTES_PER_SAMPLE, 28)
  header.writeUInt16LE(BYTES_PER_SAMPLE, 32)
  header.writeUInt16LE(BYTES_PER_SAMPLE * 8, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(UNKNOWN_BYTES, 40)
  return header
}

/** Samples as a WAV stream, for upstreams that stream pcm and no wav. The header leaves together with the first samples. */
export class WavSource implements ByteSource, ByteSink {
  private sink!: ByteSink
  private begun = false

  constructor(private readonly samples: ByteSource) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.samples.start(this)
  }

  pause(): void {
    this.samples.pause()
  }

  resume(): void {
    this.samples.resume()
  }

  cancel(): void {
    this.samples.cancel()
  }

  data(chunk: Buffer): void {
    if (!this.begun) {
      this.begun = true
      this.sink.data(streamedHeader())
    }
    this.sink.data(chunk)
  }

  end(): void {
    this.sink.end()
  }

  fail(error: GatewayError): void {
    this.sink.fail(error)
  }
}
