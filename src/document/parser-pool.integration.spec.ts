import { createHash } from 'node:crypto'
import { copyFile, mkdtemp, open, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { eventually, promised } from '../../test/support/eventually.js'
import {
  childrenOf,
  DOCUMENTS,
  FAKE_ENGINE,
  isAlive,
  isOnRecord,
  markdownOf,
  MEBIBYTE,
  ParserPoolLab,
  processOf,
} from '../../test/support/parser-pools.js'
import { ClientDisconnect } from '../core/request-context.js'
import { SpooledFile } from '../core/spooled-file.js'
import { permissionFlags } from './parser-confinement.js'
import { RestartBackoff } from './parser-fleet.js'

describe('A pool of parser processes', () => {
  const lab = new ParserPoolLab()
  const { start } = lab

  afterEach(() => lab.close())

  /** The processes of as many documents as have to be read at the same time. */
  async function meeting(count: number): Promise<number[]> {
    const directory = await mkdtemp(join(tmpdir(), 'engines-'))
    const documents = Array.from({ length: count }, () => lab.pool.parse(`meet:${count},${directory}`))
    try {
      return (await Promise.all(documents)).map(processOf)
    } finally {
      await rm(directory, { recursive: true })
    }
  }

  /** So many documents that are held until `release`. */
  function hold(count: number): { readonly release: () => Promise<unknown> } {
    const disconnect = new ClientDisconnect()
    const held = Array.from({ length: count }, () => lab.pool.parse('wait', { disconnect }))
    const settled = Promise.allSettled(held)
    return {
      release: () => {
        disconnect.abort()
        return settled
      },
    }
  }

  describe('A process that is ended from outside', () => {
    /** Names of the processes that were given a document which says where to leave them. */
    async function givenTo(document: string): Promise<{ readonly kind: unknown; readonly processes: number }> {
      const directory = await mkdtemp(join(tmpdir(), 'engines-'))
      const error: unknown = await lab.pool.parse(document + directory).catch((thrown: unknown) => thrown)
      const processes = await readdir(directory)
      await rm(directory, { recursive: true })
      return { kind: (error as { kind?: unknown }).kind, processes: processes.length }
    }

    it.each([1, 2])('before it began costs the document nothing: another one of %i reads it', async (processes) => {
      start({ processes })
      const before = processOf(await lab.pool.parse('echo:before'))
      process.kill(before, 'SIGSTOP')
      const disconnect = new ClientDisconnect()
      const parsing = lab.pool.parse('echo:kept', {
        disconnect,
        onBegun: () => {
          setImmediate(() => process.kill(before, 'SIGKILL'))
        },
      })
      const document = await parsing
      expect(markdownOf(document)).toBe('kept')
      expect(processOf(document)).not.toBe(before)
    })

    it('just before it is given a document does not fail that document', async () => {
      start()
      const before = processOf(await lab.pool.parse('echo:before'))
      process.kill(before, 'SIGKILL')
      expect(markdownOf(await lab.pool.parse('echo:kept'))).toBe('kept')
    })

    it('is replaced, and a fault of the document that the next one finds is reported for the document', async () => {
      start()
      process.kill(processOf(await lab.pool.parse('echo:before')), 'SIGKILL')
      const error: unknown = await lab.pool.parse('fault:encrypted').catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ kind: 'unprocessable', details: { code: 'document_encrypted' } })
    })

    it('is replaced for a document once, and what ends the next one as well is a fault of the gateway', async () => {
      start()
      expect(await givenTo('vanish:')).toEqual({ kind: 'internal', processes: 2 })
      expect(markdownOf(await lab.pool.parse('echo:next'))).toBe('next')
    })

    it('while it reads fails the document, which no other process reads', async () => {
      start()
      expect(await givenTo('die:')).toEqual({ kind: 'unprocessable', processes: 1 })
    })
  })

  describe('Time', () => {
    it('ends a document that keeps its process busy beyond the limit of the configuration', async () => {
      start({ parseMs: 200 })
      const before = processOf(await lab.pool.parse('echo:before'))
      await expect(lab.pool.parse('hang')).rejects.toMatchObject({ kind: 'upstream_timeout' })
      expect(isAlive(before)).toBe(false)
      expect(markdownOf(await lab.pool.parse('echo:after'))).toBe('after')
    })

    it('ends a document whose process does nothing after four times as long by the clock', async () => {
      start({ parseMs: 50 })
      await lab.pool.parse('echo:warm')
      await expect(lab.pool.parse('wait')).rejects.toMatchObject({ kind: 'upstream_timeout' })
    })

    it("ends it earlier when that is the caller's wish", async () => {
      start({ parseMs: 60_000 })
      await lab.pool.parse('echo:warm')
      await expect(lab.pool.parse('hang', { timeoutMs: 150 })).rejects.toMatchObject({ kind: 'upstream_timeout' })
    })

    it('ends a wait in the queue, and the next request moves up', async () => {
      start()
      await lab.pool.parse('echo:warm')
      const disconnect = new ClientDisconnect()
      const holder = lab.pool.parse('wait', { disconnect })
      const late = lab.pool.parse('echo:late', { timeoutMs: 100 })
      const patient = lab.pool.parse('echo:patient')
      await expect(late).rejects.toMatchObject({ kind: 'upstream_timeout' })
      disconnect.abort()
      await expect(holder).rejects.toMatchObject({ kind: 'caller_left' })
      expect(markdownOf(await patient)).toBe('patient')
    })
  })

  describe('A caller who leaves', () => {
    /** Resolves once the pool has the document. */
    const begun = (document: string, disconnect: ClientDisconnect): Promise<{ readonly outcome: Promise<unknown> }> =>
      new Promise((resolve) => {
        const outcome = lab.pool.parse(document, {
          disconnect,
          onBegun: () => {
            setImmediate(() => {
              resolve({ outcome })
            })
          },
        })
      })

    it('gets nothing read any more: the process is gone within a second, and the next caller has another', async () => {
      start()
      const before = processOf(await lab.pool.parse('echo:before'))
      const disconnect = new ClientDisconnect()
      const parsing = await begun('hang', disconnect)
      const next = lab.pool.parse('echo:next')
      const leftAtMs = performance.now()
      disconnect.abort()
      await expect(parsing.outcome).rejects.toMatchObject({ kind: 'caller_left' })
      // A second is promised; the machine that runs all the tests may be late to look.
      expect(performance.now() - leftAtMs).toBeLessThan(promised(2000))
      expect(isAlive(before)).toBe(false)
      expect(markdownOf(await next)).toBe('next')
    })

    it('does not cost a process whose work is nearly done', async () => {
      start()
      const before = processOf(await lab.pool.parse('echo:before'))
      const disconnect = new ClientDisconnect()
      const parsing = await begun('pause:50', disconnect)
      disconnect.abort()
      await parsing.outcome.catch(() => undefined)
      expect(processOf(await lab.pool.parse('echo:after'))).toBe(before)
    })

    it('loses the place in the line at once, and never reaches a process', async () => {
      start({ queue: 1 })
      await lab.pool.parse('echo:warm')
      const holder = new ClientDisconnect()
      const held = lab.pool.parse('wait', { disconnect: holder })
      const disconnect = new ClientDisconnect()
      const leaver = lab.pool.parse('leave:1', { disconnect })
      await expect(lab.pool.parse('echo:third')).rejects.toMatchObject({ kind: 'overloaded' })
      disconnect.abort()
      await expect(leaver).rejects.toMatchObject({ kind: 'caller_left' })
      const third = lab.pool.parse('echo:third')
      holder.abort()
      await expect(held).rejects.toMatchObject({ kind: 'caller_left' })
      expect(markdownOf(await third)).toBe('third')
    })

    it('has left before anything began', async () => {
      start()
      const disconnect = new ClientDisconnect()
      disconnect.abort()
      await expect(lab.pool.parse('echo:1', { disconnect })).rejects.toMatchObject({ kind: 'caller_left' })
    })
  })

  describe('Many documents at once', () => {
    it('are read in as many processes as the configuration grants, and no more', async () => {
      start({ processes: 2, queue: 6 })
      const processes = await meeting(2)
      expect(new Set(processes).size).toBe(2)
      const documents = await Promise.all(Array.from({ length: 6 }, () => lab.pool.parse('pause:20')))
      for (const document of documents) expect(processes).toContain(processOf(document))
    })

    it('wait in a line of bounded length; beyond it callers hear at once when to come again', async () => {
      start({ processes: 1, queue: 2 })
      const held = hold(3)
      await expect(lab.pool.parse('echo:4')).rejects.toMatchObject({
        kind: 'overloaded',
        details: { retryAfterSeconds: 1 },
      })
      await held.release()
      expect(markdownOf(await lab.pool.parse('echo:5'))).toBe('5')
    })

    it('may have no line at all', async () => {
      start({ processes: 1, queue: 0 })
      const held = hold(1)
      await expect(lab.pool.parse('echo:2')).rejects.toMatchObject({ kind: 'overloaded' })
      await held.release()
    })

    it('are served in the order in which they came', async () => {
      start({ processes: 1, queue: 10 })
      const order: string[] = []
      const names = ['a', 'b', 'c', 'd']
      await Promise.all(
        names.map((name) => lab.pool.parse(`echo:${name}`).then((document) => order.push(markdownOf(document)))),
      )
      expect(order).toEqual(names)
    })

    it('go round by their callers, whatever one of them sends', async () => {
      start({ processes: 1, queue: 10 })
      const order: string[] = []
      const names = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']
      await Promise.all(
        names.map((name) =>
          lab.pool
            .parse(`echo:${name}`, { keyId: name.slice(0, 1) })
            .then((document) => order.push(markdownOf(document))),
        ),
      )
      expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
    })

    it('leave a place for the next caller, and more once it has asked', async () => {
      start({ processes: 1, queue: 7 })
      const held = hold(7)
      await expect(lab.pool.parse('echo:8')).rejects.toMatchObject({ kind: 'overloaded' })
      const other = lab.pool.parse('echo:other', { keyId: 'b' })
      await expect(lab.pool.parse('echo:2nd', { keyId: 'b' })).rejects.toMatchObject({ kind: 'overloaded' })
      await held.release()
      expect(markdownOf(await other)).toBe('other')
    })
  })

  describe('A process', () => {
    it('is not there before the first document', async () => {
      start()
      expect(childrenOf(process.pid)).toEqual([])
      const first = processOf(await lab.pool.parse('echo:1'))
      expect(childrenOf(process.pid)).toEqual([first])
    })

    it('that has grown large is replaced without an effect on requests', async () => {
      start()
      const swollen = processOf(await lab.pool.parse('swell'))
      const [second, third] = await Promise.all([lab.pool.parse('echo:2'), lab.pool.parse('echo:3')])
      expect([markdownOf(second), markdownOf(third)]).toEqual(['2', '3'])
      expect(processOf(second)).not.toBe(swollen)
      await eventually(() => !isAlive(swollen))
    })

    it('is replaced after two hundred documents without an effect on requests', async () => {
      start({ queue: 300 })
      const documents = await Promise.all(Array.from({ length: 201 }, (_, index) => lab.pool.parse(`echo:${index}`)))
      expect(documents.map(markdownOf)).toEqual(documents.map((_, index) => String(index)))
      const processes = documents.map(processOf)
      expect(new Set(processes.slice(0, 200)).size).toBe(1)
      expect(processes[200]).not.toBe(processes[0])
    })

    it('that dies while idle is replaced before the next request', async () => {
      start()
      const first = processOf(await lab.pool.parse('echo:1'))
      process.kill(first, 'SIGKILL')
      await eventually(() => !isOnRecord(first) && childrenOf(process.pid).length === 1)
      const [second] = childrenOf(process.pid)
      expect(processOf(await lab.pool.parse('echo:2'))).toBe(second)
    })
  })

  describe('The confinement of a process', () => {
    it('is said to be missing where it is switched off', () => {
      start()
      lab.pool.pool.onApplicationBootstrap()
      expect(JSON.parse(lab.pool.logText())).toMatchObject({
        msg: 'processes that read documents are not wholly confined',
        missing: expect.arrayContaining(['files', 'programs']) as unknown,
      })
    })
  })

  describe('A process that dies while it starts', () => {
    it('is 503 for all waiting requests, logged once, and not tried again at once', async () => {
      start({ processes: 2, queue: 10 }, {}, '/nowhere/engine.mjs')
      const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => lab.pool.parse('echo:1')))
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { kind: 'overloaded' } })
      }
      const { length } = lab.pool.logText()
      for (let call = 0; call < 100; call += 1) {
        await expect(lab.pool.parse('echo:1')).rejects.toMatchObject({
          kind: 'overloaded',
          details: { retryAfterSeconds: 1 },
        })
      }
      expect(lab.pool.logText()).toHaveLength(length)
      expect(lab.pool.logText()).toContain('Cannot find module')
      expect(lab.pool.logText().trim().split('\n').length).toBeLessThanOrEqual(2)
    })

    it('is tried again after a rest, and then documents are read', async () => {
      const directory = await mkdtemp(join(tmpdir(), 'engine-'))
      const entry = join(directory, 'engine.mjs')
      start({}, {}, entry)
      await expect(lab.pool.parse('echo:1')).rejects.toMatchObject({ kind: 'overloaded' })
      await copyFile(FAKE_ENGINE, entry)
      await eventually(async () => (await lab.pool.parse('echo:2').catch(() => undefined)) !== undefined)
      await rm(directory, { recursive: true })
    })
  })

  describe('A reload of the configuration', () => {
    const reload = (documents: object): Promise<void> => lab.pool.reload({ documents: { ...DOCUMENTS, ...documents } })

    it('that grants more processes is felt by those who wait', async () => {
      start({ processes: 1 })
      const held = hold(1)
      const waiting = lab.pool.parse('echo:waiting')
      await reload({ processes: 2 })
      expect(markdownOf(await waiting)).toBe('waiting')
      await held.release()
    })

    it('that grants fewer ends the idle ones', async () => {
      start({ processes: 2 })
      const processes = await meeting(2)
      expect(processes.filter(isAlive)).toHaveLength(2)
      await reload({ processes: 1 })
      await eventually(() => processes.filter(isAlive).length === 1)
      const [first, second] = await Promise.all([lab.pool.parse('pause:20'), lab.pool.parse('pause:20')])
      expect(processOf(first)).toBe(processOf(second))
    })

    it('that changes their memory replaces them', async () => {
      start()
      const before = processOf(await lab.pool.parse('echo:1'))
      await reload({ memoryBytes: 600 * MEBIBYTE })
      expect(processOf(await lab.pool.parse('echo:2'))).not.toBe(before)
      await eventually(() => !isAlive(before))
    })
  })

  describe('The end of the gateway', () => {
    it('ends all processes, the busy ones too, and refuses waiting and new requests', async () => {
      start({ processes: 2, queue: 1 })
      const processes = await meeting(2)
      const busy = Promise.allSettled([lab.pool.parse('hang'), lab.pool.parse('hang'), lab.pool.parse('echo:waits')])
      await lab.pool.close()
      expect(processes.filter(isAlive)).toEqual([])
      const [first, second, waiting] = await busy
      for (const outcome of [first, second]) expect(outcome).toMatchObject({ status: 'rejected' })
      expect(waiting).toMatchObject({ status: 'rejected', reason: { kind: 'overloaded' } })
      await expect(lab.pool.parse('echo:late')).rejects.toMatchObject({ kind: 'overloaded' })
    })
  })

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
    ])('%s is reported as %s, and the process continues', async (document, kind, code, message) => {
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
    ])('%s ends its process only: the caller receives %s, and another process continues', async (document, kind) => {
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

    it('does not answer the next one: a process that sends an unexpected frame is ended', async () => {
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
      const options = { disconnect: new ClientDisconnect(), deadlineAtMs: Infinity, sharer: { keyId: 'a' } }
      await spool.remove()
      const file = { spool, contentType: '', name: '', baseUrl: '' }
      await expect(lab.pool.pool.parse(file, options)).rejects.toMatchObject({ kind: 'internal' })
      expect(markdownOf(await lab.pool.parse('echo:next'))).toBe('next')
    })
  })
})

describe('Processes that die while they start', () => {
  it('rest longer each time, up to half a minute, and as new after one that served', () => {
    const backOff = new RestartBackoff()
    expect(backOff.restSeconds(0)).toBe(0)
    const rests = Array.from({ length: 9 }, () => {
      backOff.failed(1000)
      return backOff.restSeconds(1000)
    })
    expect(rests).toEqual([1, 1, 1, 2, 4, 8, 16, 30, 30])
    backOff.succeeded()
    expect(backOff.restSeconds(1000)).toBe(0)
  })

  it('may start again when the rest is over', () => {
    const backOff = new RestartBackoff()
    backOff.failed(1000)
    expect([backOff.restSeconds(1249), backOff.restSeconds(1250)]).toEqual([1, 0])
  })
})

describe('The permissions of a process', () => {
  it('do not depend on the name of its script', () => {
    const flags = permissionFlags('/srv/engine/dist/renamed.js', { wrapper: [], hasPermissions: true })
    expect(flags).toEqual(expect.arrayContaining(['--permission', '--allow-fs-read=/srv/engine/*']))
  })
})
