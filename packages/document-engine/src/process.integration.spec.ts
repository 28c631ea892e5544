import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { type AddressInfo, createServer, Socket } from 'node:net'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { eventually } from '../../../test/support/eventually.js'
import {
  engineShell,
  isAlive,
  markdownOf,
  processOf,
  startPool,
  type TestPool,
} from '../../../test/support/parser-pools.js'
import { confinement } from '../../../src/document/parser-confinement.js'
import { type EngineJobHead, frameStart } from './protocol.js'

const MEBIBYTE = 1_048_576
const PARENT = fileURLToPath(new URL('../../../test/support/engine-parent.mjs', import.meta.url))
const HEAD: EngineJobHead = {
  contentType: '',
  name: '',
  baseUrl: '',
  limits: { pages: 1, decodedBytes: 1000 },
  contentBytes: 1000,
}

let shell: Awaited<ReturnType<typeof engineShell>>
let pool: TestPool
beforeAll(async () => {
  shell = await engineShell()
})
afterAll(() => rm(shell.directory, { recursive: true }))

describe('The process of an engine', () => {
  afterEach(() => pool.close())
  const start = (): void => {
    pool = startPool(
      { entry: shell.entry, confinement: confinement() },
      { documents: { processes: 1, memoryBytes: 256 * MEBIBYTE } },
    )
  }

  it.each([
    ['bytes outside of the heap', 'bytes'],
    ['objects', 'objects'],
  ])(
    'that fills its memory with %s is ended, and the document is reported as needing too much memory',
    async (_what, command) => {
      start()
      await expect(pool.parse(command)).rejects.toMatchObject({
        kind: 'unprocessable',
        message: expect.stringContaining('memory') as unknown,
      })
      expect(markdownOf(await pool.parse('echo:next'))).toBe('next')
    },
  )

  it('outlives a document that is too deep for its stack', async () => {
    start()
    const before = processOf(await pool.parse('echo:before'))
    await expect(pool.parse('deep')).rejects.toMatchObject({ kind: 'payload_too_large' })
    expect(processOf(await pool.parse('echo:after'))).toBe(before)
  })

  it('survives an unhandled rejection, and output of a library', async () => {
    start()
    const documents = [await pool.parse('forget:1'), await pool.parse('chatter:2'), await pool.parse('echo:3')]
    expect(documents.map(markdownOf)).toEqual(['1', '2', '3'])
    expect(new Set(documents.map(processOf)).size).toBe(1)
  })

  it('ignores signals to its process group: the gateway decides when it ends', async () => {
    start()
    const pid = processOf(await pool.parse('echo:before'))
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal)
    expect(processOf(await pool.parse('echo:after'))).toBe(pid)
  })

  it('is limited by the system where that has the means, and leaves no image of its memory behind', async () => {
    start()
    const limits = await readFile(`/proc/${processOf(await pool.parse('echo:before'))}/limits`, 'utf8')
    expect(limits).toMatch(existsSync('/usr/bin/prlimit') ? /Max data size +268435456 / : /Max data size/)
    expect(limits).toMatch(existsSync('/usr/bin/prlimit') ? /Max core file size +0 / : /Max core file size/)
  })

  it('reaches no network and nothing of the gateway, as far as this host has namespaces', async () => {
    start()
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const acts = ['peek', `connect:${port}`]
    const answers = await Promise.all(acts.map(async (act) => markdownOf(await pool.parse(act))))
    server.close()
    const isConfined = confinement().wrapper.length > 0
    expect(answers.map((answer) => answer.split(' ')[0])).toEqual(acts.map(() => (isConfined ? 'refused' : 'done')))
  })

  it('reaches neither files nor programs, as far as this Node has permissions', async () => {
    start()
    const acts = ['file', `write:${join(shell.directory, 'x')}`, 'program']
    const answers: string[] = []
    for (const act of acts) answers.push(markdownOf(await pool.parse(act)))
    const { hasPermissions } = confinement()
    expect(answers.map((answer) => answer.split(' ')[0])).toEqual(acts.map(() => (hasPermissions ? 'refused' : 'done')))
  })

  it('starts no thread, which would have permissions of its own', async () => {
    start()
    expect(markdownOf(await pool.parse('thread'))).toMatch(/^refused/)
  })

  it('yields to the gateway: in processor time, and when the memory of the machine ends', async () => {
    start()
    const pid = processOf(await pool.parse('echo:before'))
    expect(getPriority(pid)).toBe(5)
    expect((await readFile(`/proc/${pid}/oom_score_adj`, 'utf8')).trim()).toBe('1000')
  })
})

/** An engine that the system does not limit. */
function bareEngine(memoryBytes: number): { child: ChildProcess; pipe: Socket } {
  const child = spawn(process.execPath, [shell.entry, String(process.pid), String(memoryBytes)], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  const pipe = child.stdio[3]
  if (!(pipe instanceof Socket)) throw new Error('there is no pipe')
  pipe.on('error', () => undefined)
  return { child, pipe }
}

function send(pipe: Socket, document: string): void {
  pipe.write(frameStart(HEAD, Buffer.byteLength(document)))
  pipe.write(document)
}

describe('Where the system has no limits', () => {
  it('an engine that takes too much ends itself, even inside one call', async () => {
    const { child, pipe } = bareEngine(256 * MEBIBYTE)
    send(pipe, 'bytes')
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  })
})

describe('When the gateway is killed', () => {
  it.each(['spin', 'echo'])('no engine outlives it (%s)', async (document) => {
    const parent = spawn(process.execPath, [PARENT, shell.entry, document], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const engine = Number(line.toString())
    expect(isAlive(engine)).toBe(true)
    parent.kill('SIGKILL')
    await eventually(() => !isAlive(engine))
  })
})
