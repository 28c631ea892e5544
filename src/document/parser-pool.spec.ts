import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  FAKE_ENGINE,
  isAlive,
  markdownOf,
  MEBIBYTE,
  ParserPoolLab,
  processOf,
} from '../../test/support/parser-pools.js'
import { Departure } from '../core/departure.js'
import { SpooledFile } from '../core/spooled-file.js'

const lab = new ParserPoolLab()
const { start } = lab

afterEach(() => lab.close())

describe('A document that can be read', () => {
  it('comes back as the engine said it, its content untouched', async () => {
    start()
    const document = await lab.pool.parse('echo:"quoted" \ud83d\ude00 \u0000')
    expect(document).toMatchObject({ kind: 'text', pages: 1, metadata: { title: '' } })
    expect(document.content.toString()).toBe('"html":"","markdown":"\\"quoted\\" \ud83d\ude00 \\u0000"')
  })

  it('reaches the engine with its claims and the limits of the configuration', async () => {
    start({ pages: 7 }, { limits: { documentBytes: 1000 } })
    const claims = { contentType: 'text/plain; charset=x', name: 'ü.txt', baseUrl: 'https://example.org/a' }
    const head: unknown = JSON.parse(markdownOf(await lab.pool.parse('head', claims)))
    expect(head).toEqual({ ...claims, limits: { pages: 7, decodedBytes: 1000 }, contentBytes: 4000 })
  })

  it('arrives whole when it is larger than every buffer on the way', async () => {
    start()
    const bytes = Buffer.alloc(12 * MEBIBYTE + 1, 'multi-model')
    bytes.write('digest:')
    const digest = createHash('sha256').update(bytes).digest('hex')
    expect(markdownOf(await lab.pool.parse(bytes))).toBe(digest)
  })

  it('is read by the process that read the one before', async () => {
    start()
    const [first, second] = [await lab.pool.parse('echo:1'), await lab.pool.parse('echo:2')]
    expect(processOf(second)).toBe(processOf(first))
  })

  it('is read in a process that knows nothing of the gateway and holds nothing of it', async () => {
    const ours = await open(FAKE_ENGINE)
    start()
    const surroundings = JSON.parse(markdownOf(await lab.pool.parse('surroundings'))) as { open: string[] }
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
    const before = processOf(await lab.pool.parse('echo:before'))
    const error: unknown = await lab.pool.parse(document).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: 'GatewayError', kind })
    expect((error as { details: object }).details).toEqual(
      code === undefined ? expect.not.objectContaining({ code: expect.anything() }) : { code },
    )
    expect((error as Error).message).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
    expect((error as Error).message).not.toContain('canary')
    expect(processOf(await lab.pool.parse('echo:after'))).toBe(before)
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
    const before = processOf(await lab.pool.parse('echo:before'))
    await expect(lab.pool.parse(document)).rejects.toMatchObject({ name: 'GatewayError', kind })
    expect(isAlive(before)).toBe(false)
    const after = await lab.pool.parse('echo:after')
    expect(markdownOf(after)).toBe('after')
    expect(processOf(after)).not.toBe(before)
  })

  it('leaves the way it ended in the cause, for the log', async () => {
    start()
    await expect(lab.pool.parse('leave:3')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('code 3') as unknown },
    })
  })

  it('does not make the answer to the next one its own, as a process that speaks unasked is ended', async () => {
    start()
    const first = await lab.pool.parse('twice')
    expect(markdownOf(first)).toBe('one')
    const next = await lab.pool.parse('echo:mine')
    expect(markdownOf(next)).toBe('mine')
    expect(processOf(next)).not.toBe(processOf(first))
  })

  it('does not run into the next one when it was answered before all of it was sent', async () => {
    start()
    const bytes = Buffer.alloc(8 * MEBIBYTE, ' ')
    bytes.write('hasty:')
    const first = await lab.pool.parse(bytes)
    expect(markdownOf(first)).toBe('hasty')
    const next = await lab.pool.parse('echo:mine')
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
    await expect(lab.pool.pool.parse(file, terms)).rejects.toMatchObject({ kind: 'internal' })
    expect(markdownOf(await lab.pool.parse('echo:next'))).toBe('next')
  })
})
