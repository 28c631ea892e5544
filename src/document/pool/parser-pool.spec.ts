import { createHash } from 'node:crypto'
import { mkdtemp, open, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { Departure } from '../../common/http/departure.js'
import {
  FAKE_ENGINE,
  isAlive,
  markdownOf,
  processOf,
  startPool,
  type TestPool,
} from '../../../test/support/parser-pools.js'
import { SpooledFile } from '../../common/http/spooled-file.js'

const MEBIBYTE = 1_048_576
/** The fake engine needs none to speak of. */
const DOCUMENTS = { processes: 1, queue: 4, memoryBytes: 512 * MEBIBYTE }

let pool: TestPool
const start = (documents: object = {}, others: object = {}): void => {
  pool = startPool(FAKE_ENGINE, { documents: { ...DOCUMENTS, ...documents }, ...others })
}
afterEach(() => pool.close())

describe('A document that can be read', () => {
  it('comes back as the engine said it, its content untouched', async () => {
    start()
    const document = await pool.parse('echo:"quoted" \ud83d\ude00 \u0000')
    expect(document).toMatchObject({ kind: 'text', pages: 1, metadata: { title: '' } })
    expect(document.content.toString()).toBe('"html":"","markdown":"\\"quoted\\" \ud83d\ude00 \\u0000"')
  })

  it('reaches the engine with its claims and the limits of the configuration', async () => {
    start({ pages: 7 }, { limits: { documentBytes: 1000 } })
    const claims = { contentType: 'text/plain; charset=x', name: 'ü.txt', baseUrl: 'https://example.org/a' }
    const head: unknown = JSON.parse(markdownOf(await pool.parse('head', claims)))
    expect(head).toEqual({ ...claims, limits: { pages: 7, decodedBytes: 1000 }, contentBytes: 4000 })
  })

  it('arrives whole when it is larger than every buffer on the way', async () => {
    start()
    const bytes = Buffer.alloc(12 * MEBIBYTE + 1, 'multi-model')
    bytes.write('digest:')
    const digest = createHash('sha256').update(bytes).digest('hex')
    expect(markdownOf(await pool.parse(bytes))).toBe(digest)
  })

  it('is read by the process that read the one before', async () => {
    start()
    const [first, second] = [await pool.parse('echo:1'), await pool.parse('echo:2')]
    expect(processOf(second)).toBe(processOf(first))
  })

  it('is read in a process that knows nothing of the gateway and holds nothing of it', async () => {
    const ours = await open(FAKE_ENGINE)
    start()
    const surroundings = JSON.parse(markdownOf(await pool.parse('surroundings'))) as { open: string[] }
    await ours.close()
    expect(surroundings).toMatchObject({ cwd: '/' })
    expect(surroundings).toHaveProperty('env', { UV_THREADPOOL_SIZE: '1' })
    expect(surroundings.open).not.toContain(FAKE_ENGINE)
  })
})

describe('A document that cannot be read', () => {
  it.each([
    ['fault:unsupported', 'unsupported_media_type', undefined, 'It is unsupported.'],
    ['fault:too_large', 'payload_too_large', undefined, 'It is too_large.'],
    ['fault:encrypted', 'unprocessable', 'document_encrypted', 'It is encrypted.'],
    ['fault:no_text', 'unprocessable', 'document_without_text', 'It is no_text.'],
    ['fault:broken', 'unprocessable', 'document_broken', 'It is broken.'],
    ['starved', 'unprocessable', undefined, /more memory than the gateway grants/],
    ['fail:TypeError: canary', 'internal', undefined, /fault of the gateway/],
  ])('%s is told as %s, and the process lives on', async (document, kind, code, message) => {
    start()
    const before = processOf(await pool.parse('echo:before'))
    const error: unknown = await pool.parse(document).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: 'GatewayError', kind })
    expect((error as { details: object }).details).toEqual(
      code === undefined ? expect.not.objectContaining({ code: expect.anything() }) : { code },
    )
    expect((error as Error).message).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
    expect((error as Error).message).not.toContain('canary')
    expect(processOf(await pool.parse('echo:after'))).toBe(before)
  })

  it.each([
    ['starve', 'unprocessable'],
    ['signal:SIGKILL', 'unprocessable'],
    ['signal:SIGSEGV', 'unprocessable'],
    ['leave:3', 'internal'],
    ['leave:0', 'internal'],
    ['babble', 'internal'],
    ['nonsense', 'internal'],
    ['flood', 'internal'],
  ])('%s costs its process only: the caller is told %s, and another process reads on', async (document, kind) => {
    start()
    const before = processOf(await pool.parse('echo:before'))
    await expect(pool.parse(document)).rejects.toMatchObject({ name: 'GatewayError', kind })
    expect(isAlive(before)).toBe(false)
    const after = await pool.parse('echo:after')
    expect(markdownOf(after)).toBe('after')
    expect(processOf(after)).not.toBe(before)
  })

  it('leaves the way it ended in the cause, for the log', async () => {
    start()
    await expect(pool.parse('leave:3')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('code 3') as unknown },
    })
  })

  it('does not make the answer to the next one its own, as a process that speaks unasked is ended', async () => {
    start()
    const first = await pool.parse('twice')
    expect(markdownOf(first)).toBe('one')
    const next = await pool.parse('echo:mine')
    expect(markdownOf(next)).toBe('mine')
    expect(processOf(next)).not.toBe(processOf(first))
  })

  it('does not run into the next one when it was answered before all of it was sent', async () => {
    start()
    const bytes = Buffer.alloc(8 * MEBIBYTE, ' ')
    bytes.write('hasty:')
    const first = await pool.parse(bytes)
    expect(markdownOf(first)).toBe('hasty')
    const next = await pool.parse('echo:mine')
    expect(markdownOf(next)).toBe('mine')
    expect(processOf(next)).not.toBe(processOf(first))
  })

  it('is a fault of the gateway when its bytes cannot be sent, and the next one is read all the same', async () => {
    start()
    const spool = new SpooledFile({ memoryBytes: 1024 })
    await spool.append(Buffer.alloc(MEBIBYTE))
    await spool.finish()
    const terms = { departure: new Departure(), deadlineAtMs: Infinity }
    await spool.remove()
    const file = { spool, contentType: '', name: '', baseUrl: '' }
    await expect(pool.pool.parse(file, terms)).rejects.toMatchObject({ kind: 'internal' })
    expect(markdownOf(await pool.parse('echo:next'))).toBe('next')
  })
})

describe('A process that is ended from outside', () => {
  /** Names of the processes that were given a document which says where to leave them. */
  async function givenTo(document: string): Promise<{ readonly kind: unknown; readonly processes: number }> {
    const directory = await mkdtemp(join(tmpdir(), 'engines-'))
    const error: unknown = await pool.parse(document + directory).catch((thrown: unknown) => thrown)
    const processes = await readdir(directory)
    await rm(directory, { recursive: true })
    return { kind: (error as { kind?: unknown }).kind, processes: processes.length }
  }

  it.each([1, 2])('before it began costs the document nothing: another one of %i reads it', async (processes) => {
    start({ processes })
    const before = processOf(await pool.parse('echo:before'))
    process.kill(before, 'SIGSTOP')
    const departure = new Departure()
    const parsing = pool.parse('echo:kept', {
      departure,
      onBegun: () => {
        setImmediate(() => process.kill(before, 'SIGKILL'))
      },
    })
    const document = await parsing
    expect(markdownOf(document)).toBe('kept')
    expect(processOf(document)).not.toBe(before)
  })

  it('a moment before it is given a document, which nobody knows yet, costs that document nothing', async () => {
    start()
    const before = processOf(await pool.parse('echo:before'))
    process.kill(before, 'SIGKILL')
    expect(markdownOf(await pool.parse('echo:kept'))).toBe('kept')
  })

  it('is replaced for a document once, and what ends the next one as well is a fault of the gateway', async () => {
    start()
    expect(await givenTo('vanish:')).toEqual({ kind: 'internal', processes: 2 })
    expect(markdownOf(await pool.parse('echo:next'))).toBe('next')
  })

  it('while it reads ends the document, which is given to nobody else', async () => {
    start()
    expect(await givenTo('die:')).toEqual({ kind: 'unprocessable', processes: 1 })
  })
})

describe('Time', () => {
  it('ends a document that keeps its process busy beyond the limit of the configuration', async () => {
    start({ parseMs: 200 })
    const before = processOf(await pool.parse('echo:before'))
    await expect(pool.parse('hang')).rejects.toMatchObject({ kind: 'upstream_timeout' })
    expect(isAlive(before)).toBe(false)
    expect(markdownOf(await pool.parse('echo:after'))).toBe('after')
  })

  it("ends it earlier when that is the caller's wish", async () => {
    start({ parseMs: 60_000 })
    await pool.parse('echo:warm')
    await expect(pool.parse('hang', { timeoutMs: 150 })).rejects.toMatchObject({ kind: 'upstream_timeout' })
  })

  it('ends a wait in the line, and whoever stood behind moves up', async () => {
    start()
    await pool.parse('echo:warm')
    const departure = new Departure()
    const holder = pool.parse('wait', { departure })
    const late = pool.parse('echo:late', { timeoutMs: 100 })
    const patient = pool.parse('echo:patient')
    await expect(late).rejects.toMatchObject({ kind: 'upstream_timeout' })
    departure.announce()
    await expect(holder).rejects.toMatchObject({ kind: 'caller_left' })
    expect(markdownOf(await patient)).toBe('patient')
  })
})

describe('A caller who leaves', () => {
  /** Resolves once the pool has the document. */
  const begun = (document: string, departure: Departure): Promise<{ readonly outcome: Promise<unknown> }> =>
    new Promise((resolve) => {
      const outcome = pool.parse(document, {
        departure,
        onBegun: () => {
          setImmediate(() => {
            resolve({ outcome })
          })
        },
      })
    })

  it('gets nothing read any more: the process is gone within a second, and the next caller has another', async () => {
    start()
    const before = processOf(await pool.parse('echo:before'))
    const departure = new Departure()
    const parsing = await begun('hang', departure)
    const next = pool.parse('echo:next')
    const leftAtMs = performance.now()
    departure.announce()
    await expect(parsing.outcome).rejects.toMatchObject({ kind: 'caller_left' })
    // A second is promised; the machine that runs all the tests may be late to look.
    expect(performance.now() - leftAtMs).toBeLessThan(2000)
    expect(isAlive(before)).toBe(false)
    expect(markdownOf(await next)).toBe('next')
  })

  it('does not cost a process whose work is nearly done', async () => {
    start()
    const before = processOf(await pool.parse('echo:before'))
    const departure = new Departure()
    const parsing = await begun('pause:50', departure)
    departure.announce()
    await parsing.outcome.catch(() => undefined)
    expect(processOf(await pool.parse('echo:after'))).toBe(before)
  })

  it('loses the place in the line at once, and never reaches a process', async () => {
    start({ queue: 1 })
    await pool.parse('echo:warm')
    const holder = new Departure()
    const held = pool.parse('wait', { departure: holder })
    const departure = new Departure()
    const leaver = pool.parse('leave:1', { departure })
    await expect(pool.parse('echo:third')).rejects.toMatchObject({ kind: 'overloaded' })
    departure.announce()
    await expect(leaver).rejects.toMatchObject({ kind: 'caller_left' })
    const third = pool.parse('echo:third')
    holder.announce()
    await expect(held).rejects.toMatchObject({ kind: 'caller_left' })
    expect(markdownOf(await third)).toBe('third')
  })

  it('has left before anything began', async () => {
    start()
    const departure = new Departure()
    departure.announce()
    await expect(pool.parse('echo:1', { departure })).rejects.toMatchObject({ kind: 'caller_left' })
  })
})
