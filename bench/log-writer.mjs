/**
 * The gateway's log writer beside pino's own destinations (sonic-boom): CPU per line, a reader that stands still, and what is lost
 * at the end of a process. `node bench/log-writer.mjs [--quick]` after a build; docs/decisions/0022-log-writer.md has figures.
 * Each row is a process of its own (`--child`) whose standard output is a real pipe or a file. Linux only.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'

const SCRIPT = fileURLToPath(import.meta.url)
const LINE_BYTES = 420
const lineOf = (index) => `${JSON.stringify({ n: index, msg: 'x'.repeat(LINE_BYTES - 24) })}\n`
const LINES = Array.from({ length: 1000 }, (_, index) => lineOf(index))
const quick = process.argv.includes('--quick')

const WRITERS = {
  ours: async () => {
    const { BatchedOutput } = await import('../dist/observability/log-writer.js')
    return new BatchedOutput(1)
  },
  'pino async': () => pino.destination({ dest: 1, sync: false, minLength: 4096 }),
  /** In batches of the size and the time of ours, and bounded as ours. */
  'pino batched': () => {
    const batches = { minLength: 65_536, maxWrite: 131_072, periodicFlush: 100 }
    return pino.destination({ dest: 1, sync: false, maxLength: 8 * 1024 * 1024, ...batches })
  },
  'pino sync': () => pino.destination({ dest: 1, sync: true }),
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const tell = (facts) => process.stderr.write(`${JSON.stringify(facts)}\n`)

/** What a child does with its writer. */
const SCENARIOS = {
  /** CPU of the whole process, a few lines to a turn of the event loop, as a gateway under load writes them. */
  async cost(output) {
    const total = quick ? 50_000 : 300_000
    const write = async (count) => {
      for (let index = 0; index < count; index++) {
        output.write(LINES[index % LINES.length])
        if (index % 10 === 9) await turn()
      }
    }
    await write(20_000)
    await pause(300)
    const before = process.cpuUsage()
    await write(total)
    await pause(300)
    const { user, system } = process.cpuUsage(before)
    tell({ microsecondsPerLine: (user + system) / total })
    process.exit(0)
  },
  /** 8 MB a second at a reader that stands still: the event loop, the thread pool and the memory meanwhile. */
  async stall(output) {
    const delay = monitorEventLoopDelay({ resolution: 5 })
    const before = process.memoryUsage.rss()
    delay.enable()
    let statMs = 0
    const end = performance.now() + (quick ? 1000 : 4000)
    while (performance.now() < end) {
      for (let index = 0; index < 100; index++) output.write(LINES[index])
      const startedAt = performance.now()
      await stat(SCRIPT)
      statMs = Math.max(statMs, performance.now() - startedAt)
      await pause(5)
    }
    delay.disable()
    tell({
      longestTurnMs: Math.round(delay.max / 1e6),
      longestStatMs: Math.round(statMs),
      growthMB: Math.round((process.memoryUsage.rss() - before) / 1e6),
    })
    process.kill(process.pid, 'SIGKILL')
  },
  /** 1,000 lines and the end of the process in the same turn. */
  exit: (output) => (writeAll(output), process.exit(0)),
  'exit during a write': async (output) => {
    writeAll(output)
    await pause(120)
    writeAll(output, 1000)
    process.exit(0)
  },
  'SIGTERM, handled': async (output) => {
    process.on('SIGTERM', () => process.exit(0))
    writeAll(output)
    process.kill(process.pid, 'SIGTERM')
    await pause(5000)
  },
  'SIGTERM, not handled': async (output) => {
    writeAll(output)
    process.kill(process.pid, 'SIGTERM')
    await pause(5000)
  },
  crash: (output) => {
    writeAll(output)
    throw new Error('as meant')
  },
}

function writeAll(output, from = 0) {
  for (let index = 0; index < 1000; index++) output.write(lineOf(from + index))
}

/** Runs one writer in one scenario; `to` is what the shell does with its standard output. */
async function run(writer, scenario, to, limitMs = 60_000) {
  const out = join(directory, 'out')
  rmSync(out, { force: true })
  const command = `"$NODE" "$SCRIPT" --child "$WRITER" "$SCENARIO" ${quick ? '--quick ' : ''}${to}`
  const env = { PATH: process.env.PATH, NODE: process.execPath, SCRIPT, WRITER: writer, SCENARIO: scenario, OUT: out }
  const child = spawn('sh', ['-c', command], { env, stdio: ['ignore', 'ignore', 'pipe'], detached: true })
  let told = ''
  child.stderr.on('data', (bytes) => (told += bytes))
  const startedAt = performance.now()
  const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), limitMs)
  await new Promise((resolve) => child.on('close', resolve))
  clearTimeout(timer)
  const facts = /^\{.*\}$/m.exec(told)?.[0]
  return { ms: performance.now() - startedAt, facts: facts ? JSON.parse(facts) : {}, lines: linesIn(out), told }
}

/** Whole lines, in which order they came, and whether one was cut. */
function linesIn(file) {
  let text = ''
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    // Nothing was written.
  }
  const rows = text.split('\n').filter((row) => row !== '')
  let whole = 0
  let isOrdered = true
  let last = -1
  for (const row of rows) {
    const number = row.endsWith('"}') ? Number(/^\{"n":(\d+),/.exec(row)?.[1] ?? Number.NaN) : Number.NaN
    if (Number.isNaN(number)) continue
    whole++
    isOrdered &&= number > last
    last = number
  }
  return { whole, broken: rows.length - whole, isOrdered }
}

const TO_FILE = '> "$OUT"'
const TO_PIPE = '| cat > "$OUT"'
const lateReader = (seconds) => `| (sleep ${seconds}; cat > "$OUT")`
const DEAD_READER = '| sleep 9'
/** After it the reader is gone as well, and a writer may still not end. */
const DEAD_END_LIMIT_MS = 12_000

async function costs(writers) {
  const table = []
  for (const [name, to] of [
    ['file', TO_FILE],
    ['pipe', TO_PIPE],
  ]) {
    const figures = Object.fromEntries(writers.map((writer) => [writer, []]))
    for (let round = 0; round < (quick ? 1 : 5); round++) {
      const order = round % 2 === 0 ? writers : [...writers].reverse()
      for (const writer of order) figures[writer].push((await run(writer, 'cost', to)).facts.microsecondsPerLine)
    }
    for (const writer of writers) {
      const sorted = figures[writer].sort((a, b) => a - b)
      const row = { writer, to: name, 'µs/line': sorted[sorted.length >> 1]?.toFixed(2) }
      table.push({ ...row, lowest: sorted[0]?.toFixed(2), highest: sorted.at(-1)?.toFixed(2) })
    }
  }
  return table
}

async function stalls(writers) {
  const table = []
  for (const writer of writers) {
    const { facts } = await run(writer, 'stall', DEAD_READER, 15_000)
    const isBlocked = facts.longestTurnMs === undefined
    table.push({ writer, ...(isBlocked ? { longestTurnMs: 'blocked for good' } : facts) })
  }
  return table
}

const ENDS = ['exit', 'exit during a write', 'SIGTERM, handled', 'SIGTERM, not handled', 'crash']

async function ends(writers) {
  const table = []
  for (const [name, to] of [
    ['file', TO_FILE],
    ['pipe', TO_PIPE],
    ['pipe read after 0.5 s', lateReader(0.5)],
  ]) {
    for (const scenario of ENDS) {
      const row = { to: name, end: scenario }
      for (const writer of writers) {
        const { lines } = await run(writer, scenario, to, 10_000)
        const more = [lines.broken > 0 && `${lines.broken} cut`, !lines.isOrdered && 'disordered'].filter(Boolean)
        row[writer] = [lines.whole, ...more].join(', ')
      }
      table.push(row)
    }
  }
  const row = { to: 'pipe never read', end: 'exit' }
  for (const writer of writers) {
    const ms = await timeOfDeadEnd(writer)
    row[writer] =
      ms === Infinity ? `not within ${DEAD_END_LIMIT_MS / 1000} s` : `ends after ${(ms / 1000).toFixed(1)} s`
  }
  table.push(row)
  return table
}

/** From its start until the process is gone, while a reader holds the pipe open and reads nothing. */
async function timeOfDeadEnd(writer) {
  const env = { PATH: process.env.PATH, NODE: process.execPath, SCRIPT, WRITER: writer }
  const command = '( "$NODE" "$SCRIPT" --child "$WRITER" exit; echo gone >&2 ) | sleep 9'
  const child = spawn('sh', ['-c', command], { env, stdio: ['ignore', 'ignore', 'pipe'], detached: true })
  const startedAt = performance.now()
  const ms = await new Promise((resolve) => {
    child.stderr.once('data', () => resolve(performance.now() - startedAt))
    setTimeout(resolve, DEAD_END_LIMIT_MS, Infinity)
  })
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
  return ms
}

let directory
if (process.argv[2] === '--child') {
  const output = await WRITERS[process.argv[3]]()
  await SCENARIOS[process.argv[4]](output)
} else {
  directory = mkdtempSync(join(tmpdir(), 'log-writer-bench-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  const writers = Object.keys(WRITERS)
  console.log('CPU of the process per line of 420 bytes')
  console.table(await costs(writers))
  console.log('A pipe whose reader stands still, 8 MB of lines a second')
  console.table(await stalls(writers))
  console.log('Whole lines of 1,000 (of 2,000 where the process ends during a write) that arrive')
  console.table(await ends(writers))
}
