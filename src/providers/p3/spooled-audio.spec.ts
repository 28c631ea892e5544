import { readdirSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../../test/support/byte-streams.js'
import { eventually } from '../../../test/support/eventually.js'
import { newCall } from '../../../test/support/raw-upstream.js'
import { collect } from '../../core/byte-source.js'
import { GatewayError } from '../../core/gateway-error.js'
import { SpooledFile } from '../../core/spooled-file.js'
import { spool, SpooledSource } from './spooled-audio.js'

const MEMORY_BYTES = 1000
const MAXIMUM_BYTES = 400_000
const AUDIO = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251))

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spooled-audio-spec-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const file = (): SpooledFile => new SpooledFile({ directory, memoryBytes: MEMORY_BYTES })

/** Named files, and on Linux open descriptors of files without a name. */
function leftovers(): string[] {
  const open = process.platform === 'linux' ? readdirSync('/proc/self/fd').map(targetOf) : []
  return [...readdirSync(directory), ...open.filter((target) => target.startsWith(directory))]
}

function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ''
  }
}

const gone = (): Promise<void> => eventually(() => leftovers().length === 0)

async function spooled(bytes = AUDIO): Promise<SpooledFile> {
  const body = new ManualSource()
  const done = spool(body, MAXIMUM_BYTES, file())
  body.data(bytes)
  body.end()
  return await done
}

describe('spooled audio', () => {
  it.each([10, MEMORY_BYTES, AUDIO.length])('of %s bytes is read back as it came, and then gone', async (size) => {
    const bytes = AUDIO.subarray(0, size)
    const kept = await spooled(bytes)
    expect(kept.size).toBe(size)
    if (process.platform === 'linux') expect(leftovers()).toHaveLength(size > MEMORY_BYTES ? 1 : 0)
    const read = await collect(new SpooledSource(kept, newCall()), AUDIO.length, () => new GatewayError('internal', ''))
    expect(read.equals(bytes)).toBe(true)
    await gone()
  })

  it('arrives no faster than the disk takes it', async () => {
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    body.data(AUDIO, AUDIO)
    expect(body.asked).toEqual(['pause'])
    await eventually(() => body.asked.length === 2)
    expect(body.asked).toEqual(['pause', 'resume'])
    body.end()
    await (await done).remove()
  })

  it('is gone when its source fails', async () => {
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    const cut = new GatewayError('upstream_failed', 'cut')
    body.data(AUDIO)
    if (process.platform === 'linux') await eventually(() => leftovers().length === 1)
    body.fail(cut)
    await expect(done).rejects.toBe(cut)
    await gone()
  })

  it('is refused, and gone, once it is longer than any speech', async () => {
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    body.data(AUDIO, AUDIO)
    expect(body.asked).not.toContain('cancel')
    body.data('x', 'late')
    expect(body.asked).toContain('cancel')
    await expect(done).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'answered', channelFault: true } },
    })
    await gone()
  })

  it('that the disk refuses ends the upstream call and is the gateway’s fault', async () => {
    await rm(directory, { recursive: true })
    const body = new ManualSource()
    const done = spool(body, MAXIMUM_BYTES, file())
    body.data(AUDIO)
    await expect(done).rejects.toMatchObject({ kind: 'internal' })
    expect(body.asked).toContain('cancel')
  })

  it('is gone when its caller leaves, before or while it is read', async () => {
    for (const isStarted of [false, true]) {
      const call = newCall()
      const source = new SpooledSource(await spooled(), call)
      const sink = new RecordingSink()
      if (isStarted) source.start(sink)
      call.departure.announce()
      if (!isStarted) source.start(sink)
      expect(sink.failure).toBe('caller_left')
      await gone()
    }
    const left = newCall()
    left.departure.announce()
    const sink = new RecordingSink()
    new SpooledSource(await spooled(), left).start(sink)
    expect(sink.failure).toBe('caller_left')
    await gone()
  })

  it('waits for a slow reader and is gone when that gives it up', async () => {
    const source = new SpooledSource(await spooled(), newCall())
    const sink = new RecordingSink()
    source.start({
      data: (chunk) => {
        sink.data(chunk)
        if (sink.chunks.length === 1) source.pause()
        else source.cancel()
      },
      end: () => {
        sink.end()
      },
      fail: (error) => {
        sink.fail(error)
      },
    })
    await eventually(() => sink.chunks.length === 1)
    let turns = 0
    await eventually(() => ++turns > 100)
    expect(sink.chunks).toHaveLength(1)
    source.resume()
    await eventually(() => sink.failure === 'caller_left')
    expect(sink.chunks).toHaveLength(2)
    await gone()
  })
})
