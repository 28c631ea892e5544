import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { SpooledFile } from './spooled-file.js'

const pattern = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, index) => (index * 31 + 7) % 251))

describe('SpooledFile', () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'spooled-file-spec-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  async function spoolOf(content: Buffer, memoryBytes = 1024): Promise<SpooledFile> {
    const spool = new SpooledFile({ directory, memoryBytes })
    await spool.append(content)
    await spool.finish()
    return spool
  }

  it('gives back the bytes it was given, whatever the chunks and the memory, as often as asked', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 12 }),
        fc.integer({ min: 1, max: 700 }),
        fc.nat(3000),
        fc.nat(3000),
        async (chunks, memoryBytes, position, length) => {
          const spool = new SpooledFile({ directory, memoryBytes })
          for (const chunk of chunks) await spool.append(Buffer.from(chunk))
          await spool.finish()
          const whole = Buffer.concat(chunks)
          expect(spool.size).toBe(whole.length)
          expect(spool.head.equals(whole.subarray(0, 65_536))).toBe(true)
          expect((await buffer(spool.createReadStream())).equals(whole)).toBe(true)
          expect((await buffer(spool.createReadStream())).equals(whole)).toBe(true)
          expect((await spool.read(position, length)).equals(whole.subarray(position, position + length))).toBe(true)
          await spool.remove()
        },
      ),
      { numRuns: 60 },
    )
  })

  it('keeps the order of appends that were not awaited', async () => {
    const spool = new SpooledFile({ directory, memoryBytes: 10 })
    const content = pattern(100)
    await Promise.all([0, 25, 50, 75].map((start) => spool.append(content.subarray(start, start + 25))))
    await spool.finish()
    expect((await spool.read(0, 100)).equals(content)).toBe(true)
    await spool.remove()
  })

  it('gives its bytes in pieces, each until the next one is asked for, around the size of a piece', async () => {
    const pieceBytes = 262_144
    for (const length of [0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 3 * pieceBytes]) {
      const content = pattern(length)
      for (const memoryBytes of [1024, 1024 * 1024]) {
        const spool = await spoolOf(content, memoryBytes)
        const lengths: number[] = []
        let position = 0
        for await (const piece of spool.pieces()) {
          expect(piece.equals(content.subarray(position, position + piece.length))).toBe(true)
          position += piece.length
          lengths.push(piece.length)
        }
        expect(position).toBe(length)
        expect(lengths).toHaveLength(Math.ceil(length / pieceBytes))
        await spool.remove()
      }
    }
  })

  it('lets two readers of pieces at its bytes at a time', async () => {
    const content = pattern(600_000)
    const spool = await spoolOf(content)
    const [first, second] = [spool.pieces(), spool.pieces()]
    const piece = (await first.next()).value as Buffer
    await second.next()
    await second.next()
    expect(piece.equals(content.subarray(0, piece.length))).toBe(true)
    await spool.remove()
    await expect(first.next()).rejects.toThrow('cannot be read now')
  })

  it('shows only the first 64 KiB as its head, in memory and on disk', async () => {
    const content = pattern(200_000)
    for (const memoryBytes of [1_000_000, 100_000]) {
      const spool = await spoolOf(content, memoryBytes)
      expect(spool.head.equals(content.subarray(0, 65_536))).toBe(true)
      await spool.remove()
    }
  })

  it('leaves no name in the directory while it holds a file', async () => {
    const spool = await spoolOf(pattern(5000))
    expect(await readdir(directory)).toEqual([])
    expect((await spool.read(4000, 10)).length).toBe(10)
    await spool.remove()
  })

  it('can be removed twice, and before anything was written', async () => {
    const spool = await spoolOf(pattern(5000))
    await Promise.all([spool.remove(), spool.remove()])
    await spool.remove()
    await new SpooledFile({ directory }).remove()
  })

  it('can be removed while it is read: the read under way ends, the stream fails, nothing crashes', async () => {
    const spool = await spoolOf(pattern(500_000))
    const stream = spool.createReadStream()
    const reading = spool.read(0, 400_000)
    stream.read()
    const streamed = expect(buffer(stream)).rejects.toThrow('cannot be read now')
    await spool.remove()
    expect((await reading).length).toBe(400_000)
    await streamed
    await expect(spool.read(0, 1)).rejects.toThrow('cannot be read now')
  })

  it('can be removed while an append is opening its file', async () => {
    const spool = new SpooledFile({ directory, memoryBytes: 10 })
    const appended = spool.append(pattern(1000))
    await spool.remove()
    await appended
    expect(await readdir(directory)).toEqual([])
    await expect(spool.append(pattern(1))).rejects.toThrow('takes no more bytes')
  })

  it('tells when the disk refuses', async () => {
    const spool = new SpooledFile({ directory: join(directory, 'missing'), memoryBytes: 10 })
    await expect(spool.append(pattern(1000))).rejects.toMatchObject({ code: 'ENOENT' })
    await spool.remove()
  })
})
