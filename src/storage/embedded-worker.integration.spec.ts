import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import pg from 'pg'
import { dataDirectory } from '../../test/support/stores.js'
import { WorkerSocket } from './embedded-worker.js'

describe('the worker of the embedded store', () => {
  const FILE = fileURLToPath(new URL('./postgres.worker.mjs', import.meta.url))

  /** The worker as it is, on a disk that is watched: [0] counts, and once [1] is set no `fsync` succeeds any more. */
  const WATCHED = `
  const fs = require('node:fs')
  const { workerData } = require('node:worker_threads')
  const { fsyncSync } = fs
  fs.fsyncSync = (handle) => {
    Atomics.add(workerData.disk, 0, 1)
    if (Atomics.load(workerData.disk, 1) > 0) throw Object.assign(new Error('the disk is broken'), { code: 'EIO' })
    fsyncSync(handle)
  }
  require('node:module').syncBuiltinESMExports()
  import(workerData.file)`

  let directory: string
  let disk: Int32Array
  let worker: Worker
  let client: pg.Client

  beforeAll(async () => {
    directory = await dataDirectory()
  })

  beforeEach(async () => {
    disk = new Int32Array(new SharedArrayBuffer(8))
    const workerData = { directory: join(directory, 'postgres'), disk, file: FILE }
    worker = new Worker(WATCHED, { eval: true, workerData, execArgv: [] })
    await once(worker, 'message')
    const { port1, port2 } = new MessageChannel()
    worker.postMessage(port2, [port2])
    const socket = new WorkerSocket(port1, () => undefined)
    client = new pg.Client({ stream: () => socket, user: 'postgres', database: 'postgres' })
    client.on('error', () => undefined)
    await client.connect()
    await client.query('create table if not exists written (number int primary key)')
  })

  afterEach(() => worker.terminate())

  afterAll(() => rm(directory, { recursive: true }))

  const syncs = (): number => Atomics.load(disk, 0)

  it('has each commit on the disk before it answers, and nothing to sync for what is only read', async () => {
    for (let number = 0; number < 5; number += 1) {
      const before = syncs()
      await client.query('insert into written values ($1)', [number])
      expect(syncs()).toBeGreaterThan(before)
    }
    const before = syncs()
    await client.query('select * from written')
    expect(syncs()).toBe(before)
  })

  it('syncs a transaction once, at its end', async () => {
    const before = syncs()
    await client.query('begin')
    for (let number = 10; number < 15; number += 1) await client.query('insert into written values ($1)', [number])
    expect(syncs()).toBe(before)
    await client.query('commit')
    expect(syncs()).toBe(before + 1)
  })

  it('acknowledges nothing that the disk has not taken, and ends', async () => {
    const ended = once(worker, 'exit')
    Atomics.store(disk, 1, 1)
    await expect(client.query('insert into written values (99)')).rejects.toThrow('Connection terminated')
    await ended
  })

  it('answers errors with their codes, and goes on after them', async () => {
    await expect(client.query('select nothing')).rejects.toMatchObject({ code: '42703' })
    await expect(client.query('select $1::int', ['x'])).rejects.toMatchObject({ code: '22P02' })
    await expect(client.query('select 1; select nothing')).rejects.toMatchObject({ code: '42703' })
    const { rows } = await client.query<object>({ name: 'prepared', text: 'select $1::bigint as big', values: ['9'] })
    expect(rows).toEqual([{ big: '9' }])
  })

  it('takes and gives megabytes', async () => {
    const text = 'x'.repeat(5_000_000)
    const { rows } = await client.query<{ text: string }>('select $1::text as text', [text])
    expect(rows[0]?.text === text).toBe(true)
  })
})

describe('WorkerSocket', () => {
  let worker: MessagePort
  let socket: WorkerSocket
  const onSilence = jest.fn()

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] })
    onSilence.mockClear()
    const { port1, port2 } = new MessageChannel()
    worker = port1
    socket = new WorkerSocket(port2, onSilence)
  })

  afterEach(() => {
    socket.destroy()
    jest.useRealTimers()
  })

  const nextMessage = async (): Promise<string> => {
    const [bytes] = (await once(worker, 'message')) as [Uint8Array]
    return Buffer.from(bytes).toString()
  }

  /** Sends messages, and lets the worker answer once. */
  const answerOneOf = async (...sent: readonly string[]): Promise<void> => {
    for (const text of sent) socket.write(text)
    await nextMessage()
    worker.postMessage(Uint8Array.from(Buffer.from('answer')))
    await once(socket, 'data')
  }

  it('sends together what the driver corks together', async () => {
    socket.cork()
    socket.write('Parse')
    socket.write('Bind')
    socket.write('Sync')
    process.nextTick(() => {
      socket.uncork()
    })
    expect(await nextMessage()).toBe('ParseBindSync')
  })

  it('hands over what the worker answers, also to nothing at all', async () => {
    socket.write('a')
    worker.postMessage(new Uint8Array())
    worker.postMessage(Uint8Array.from(Buffer.from('answer')))
    const [data] = (await once(socket, 'data')) as [Buffer]
    expect(data.toString()).toBe('answer')
  })

  it('ends when the worker ends', async () => {
    const closed = once(socket, 'close')
    worker.close()
    await closed
    expect(socket.destroyed).toBe(true)
  })

  it('ends when the driver ends it', async () => {
    const closed = once(worker, 'close')
    socket.resume()
    socket.end('X')
    expect(await nextMessage()).toBe('X')
    await closed
  })

  it('complains of a worker that leaves one of two messages unanswered for a minute', async () => {
    await answerOneOf('first', 'second')
    jest.advanceTimersByTime(59_999)
    expect(onSilence).not.toHaveBeenCalled()
    jest.advanceTimersByTime(1)
    expect(onSilence).toHaveBeenCalledTimes(1)
  })

  it('complains of nothing once all is answered', async () => {
    await answerOneOf('only')
    jest.advanceTimersByTime(600_000)
    expect(onSilence).not.toHaveBeenCalled()
  })
})
