import { describe, expect, it } from '@jest/globals'
import { SpooledFile } from '../core/spooled-file.js'
import { ByteWindow } from './byte-window.js'
import { inspectWebm } from './mp4-webm.js'
import { inspectMp4 } from './mp4.js'

/** 4,096 elements, and the few reads that look into one. */
const READ_LIMIT = 4_200

class CountingWindow extends ByteWindow {
  reads = 0

  override bytes(position: number, length: number): Promise<Buffer> {
    this.reads += 1
    return super.bytes(position, length)
  }
}

type Inspector = (bytes: ByteWindow, extension: string) => Promise<unknown>

async function inspect(content: Buffer, inspector: Inspector): Promise<{ reads: number; verdict: unknown }> {
  const spool = new SpooledFile({ memoryBytes: content.length * 4 })
  try {
    await spool.append(content)
    await spool.finish()
    const bytes = new CountingWindow(spool)
    const verdict: unknown = await inspector(bytes, 'webm').catch((error: unknown) => error)
    return { reads: bytes.reads, verdict }
  } finally {
    await spool.remove()
  }
}

const repeat = (piece: Buffer, count: number): Buffer => Buffer.concat(Array<Buffer>(count).fill(piece))

/** An MP4 box; `size` is what it claims. */
function box(type: string, content: Buffer = Buffer.alloc(0), size = content.length + 8): Buffer {
  const header = Buffer.alloc(8)
  header.writeUInt32BE(size)
  header.write(type, 4, 'latin1')
  return Buffer.concat([header, content])
}

/** An EBML element with a size of eight bytes; `size` is what it claims. */
function element(id: string, content: Buffer = Buffer.alloc(0), size = content.length): Buffer {
  const header = Buffer.alloc(8)
  header.writeBigUInt64BE(BigInt(size))
  header.writeUInt8(0x01, 0)
  return Buffer.concat([Buffer.from(id, 'hex'), header, content])
}

const FAR = 100_000_000
const mp4 = (tracks: Buffer): Buffer => Buffer.concat([box('ftyp', Buffer.from('isom')), box('moov', tracks)])
const webm = (segments: Buffer): Buffer => {
  const audioTrack = element('1654ae6b', element('ae', element('83', Buffer.of(2))))
  const head = element('1a45dfa3', element('4282', Buffer.from('webm')))
  return Buffer.concat([head, element('18538067', audioTrack), segments])
}

describe('a hostile file', () => {
  it.each<[string, Buffer, Inspector]>([
    [
      'an MP4 of tracks that claim all that follows',
      mp4(repeat(box('trak', box('mdia', undefined, FAR)), 800)),
      inspectMp4,
    ],
    ['an MP4 of nested boxes without end', mp4(repeat(box('trak', box('mdia', box('minf'))), 4000)), inspectMp4],
    [
      'a WebM of clusters that claim all that follows',
      webm(repeat(element('18538067', element('1f43b675', undefined, FAR)), 800)),
      inspectWebm,
    ],
    [
      'a WebM of nested elements without end',
      webm(repeat(element('18538067', element('1f43b675', element('e7'))), 4000)),
      inspectWebm,
    ],
  ])('%s is refused after a bounded number of reads', async (_name, content, inspector) => {
    const { reads, verdict } = await inspect(content, inspector)
    expect(verdict).toMatchObject({ kind: 'invalid_request', details: { code: 'audio_undecodable' } })
    expect(reads).toBeLessThanOrEqual(READ_LIMIT)
  })

  it('lends a track no sound of the track behind it', async () => {
    const handler = box('hdlr', Buffer.from('\0\0\0\0\0\0\0\0soun', 'latin1'))
    const claiming = box('trak', box('mdia', undefined, FAR))
    const content = Buffer.concat([mp4(Buffer.concat([claiming, handler])), box('mdat', Buffer.alloc(9))])
    expect((await inspect(content, inspectMp4)).verdict).toMatchObject({ details: { code: 'audio_undecodable' } })
  })
})
