import { execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as passTime } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import ts from 'typescript'
import { BatchedOutput } from '../observability/log-writer.js'
import { WorkerLines } from './worker-lines.js'

const COMMON = fileURLToPath(new URL('../common/', import.meta.url))

/** Each line says how long it is, most are short, some longer than any pipe takes at once. */
const WRITER = `
import { BatchedOutput } from './observability/batched-output.js'
const output = new BatchedOutput(1)
const [writer] = process.argv.slice(1)
let count = 0
const timer = setInterval(() => {
  for (let line = 0; line < 30; line++) {
    const length = [100, 300, 2500, 700, 20000][count % 5]
    output.write(JSON.stringify({ writer, count: count++, text: 'é'.repeat(length) }) + '\\n')
  }
  if (count === 150) clearInterval(timer)
}, 5)`

const COUNTS = Array.from({ length: 150 }, (_, count) => count)
const END_MARK = 'end\n'

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'worker-lines-'))
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  build(join(COMMON, 'observability/batched-output.ts'))
})
afterAll(() => {
  rmSync(directory, { recursive: true })
})

/** Writes a module, and those of ours that it imports, as JavaScript to the same places below `directory`. */
function build(source: string): void {
  const { outputText } = ts.transpileModule(readFileSync(source, 'utf8'), {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  })
  const target = join(directory, relative(COMMON, source).replace(/\.ts$/, '.js'))
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, outputText)
  for (const [, path] of outputText.matchAll(/from '(\.[^']+)\.js'/g)) build(join(dirname(source), `${path}.ts`))
}

/** Reads a pipe a little at a time, so that it is full nearly always; resolves with everything before the end mark. */
async function readSlowly(readEnd: number): Promise<string> {
  const reader = new Socket({ fd: readEnd, readable: true, writable: false }).setEncoding('utf8')
  let text = ''
  for await (const chunk of reader) {
    text += String(chunk)
    if (text.endsWith(END_MARK)) break
    await passTime(1)
  }
  return text.slice(0, -END_MARK.length)
}

describe('lines of several workers', () => {
  it('are whole, complete and in the order of each in a full pipe that is read slowly, however long they are', async () => {
    const path = join(directory, 'pipe')
    execFileSync('mkfifo', [path])
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writeEnd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    const output = new BatchedOutput(writeEnd)
    const lines = new WorkerLines(output)
    for (const [index, writer] of ['a', 'b', 'c', 'd'].entries()) {
      const options = ['--input-type=module', '--eval', WRITER, writer]
      const child = spawn(process.execPath, options, { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] })
      lines.follow(child.stdout, index + 1)
    }
    const text = readSlowly(readEnd)
    await lines.ended()
    output.write(END_MARK)
    const counts: Record<string, number[]> = {}
    for (const line of (await text).trimEnd().split('\n')) {
      const { worker, writer, count } = JSON.parse(line) as { worker: number; writer: string; count: number }
      ;(counts[`${writer}${worker}`] ??= []).push(count)
    }
    closeSync(writeEnd)
    expect(counts).toEqual({ a1: COUNTS, b2: COUNTS, c3: COUNTS, d4: COUNTS })
  }, 60_000)

  it('end where a worker was killed over one', async () => {
    const told: string[] = []
    const lines = new WorkerLines({ write: (line) => told.push(line) })
    const [killed, other] = [new PassThrough(), new PassThrough()]
    for (const [index, output] of [killed, other].entries()) lines.follow(output, index + 1)
    killed.write('{"msg":"o')
    other.end('{"msg":"other"}\n')
    killed.write('ne"}\n{"msg":"tw')
    killed.destroy()
    await lines.ended()
    expect(told.sort()).toEqual([
      '{"worker":1,"msg":"one"}\n',
      '{"worker":1,"msg":"tw\n',
      '{"worker":2,"msg":"other"}\n',
    ])
  })
})
