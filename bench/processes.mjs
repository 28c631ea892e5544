import { spawn } from 'node:child_process'
import { openSync, closeSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A busy disk takes its time for a new store. */
const READY_LIMIT_MS = 60_000
const STOP_LIMIT_MS = 5_000
/** What a child may see of our environment: nothing that could configure it by accident. */
const KEPT_VARIABLES = ['PATH', 'HOME', 'TMPDIR', 'TZ', 'LOG_LEVEL']
/** The kernel counts CPU time in /proc in hundredths of a second on every Linux Node runs on. */
const MICROSECONDS_PER_TICK = 10_000
const PAGE_BYTES = 4096

const running = new Set()
let scratch

/** A directory for logs and data of the children; gone when the run ends. */
export function scratchDirectory() {
  scratch ??= mkdtempSync(join(tmpdir(), 'gateway-bench-'))
  return scratch
}

/** Kills the processes that still run when the run ends, for any reason. */
process.on('exit', () => {
  for (const service of running) service.child.kill('SIGKILL')
  if (scratch) rmSync(scratch, { recursive: true, force: true })
})

const keptVariables = () =>
  Object.fromEntries(KEPT_VARIABLES.flatMap((key) => (process.env[key] ? [[key, process.env[key]]] : [])))

export async function freePort() {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/**
 * Starts `node <flags> <script>` on a free port, or another program, and waits until `readyPath` answers 200.
 * @param {{ program?: (port: number) => string[] }} options `program`: another one, with its arguments; it serves on the port it is given
 * @returns {Promise<Service>}
 * @throws when it exits or is not ready within 60 s; the end of its log is in the message
 */
export async function startService({ name, script, flags = [], environment = {}, readyPath, program }) {
  const port = await freePort()
  const logFile = join(scratchDirectory(), `${name}-${port}.log`)
  const log = openSync(logFile, 'a')
  const [command, ...parameters] = program?.(port) ?? [process.execPath, ...flags, script]
  const child = spawn(command, parameters, {
    cwd: scratchDirectory(),
    env: {
      ...keptVariables(),
      NODE_ENV: 'production',
      ...environment,
      PORT: String(port),
      METRICS_PORT: '0',
      HOST: '127.0.0.1',
    },
    stdio: ['pipe', log, log],
  })
  closeSync(log)
  const service = new Service(name, child, port, logFile)
  await service.untilReady(readyPath)
  return service
}

/** User and system time of all processes of this machine, what the hypervisor took from it included, in microseconds. */
export function machineMicroseconds() {
  const [user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'latin1')
    .slice(0, 200)
    .split('\n', 1)[0]
    .split(/ +/)
    .slice(1)
    .map(Number)
  return (user + nice + system + irq + softirq + steal) * MICROSECONDS_PER_TICK
}

/** Runs `node <script>` to its end. Rejects with the end of its output when that is not 0. */
export async function runToEnd(script, environment) {
  const child = spawn(process.execPath, [script], {
    cwd: scratchDirectory(),
    env: { ...keptVariables(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (output += bytes))
  const code = await new Promise((resolve, reject) => child.on('close', resolve).on('error', reject))
  if (code !== 0) throw new Error(`${script} ended with ${code}:\n${output.slice(-2000)}`)
}

/** A child process that serves on a port of 127.0.0.1. */
class Service {
  constructor(name, child, port, logFile) {
    Object.assign(this, { name, child, port, logFile, pid: child.pid })
    running.add(this)
    this.exited = new Promise((resolve) => {
      child.on('exit', () => resolve(running.delete(this)))
      child.on('error', () => resolve(running.delete(this)))
    })
  }

  async untilReady(path) {
    const deadline = performance.now() + READY_LIMIT_MS
    while (running.has(this) && performance.now() < deadline) {
      const status = await fetch(`http://127.0.0.1:${this.port}${path}`).then(
        (answer) => answer.text().then(() => answer.status),
        () => 0,
      )
      if (status === 200) return
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const how = running.has(this) ? 'was not ready in time' : 'ended while starting'
    throw new Error(`${this.name} ${how}:\n${this.logTail()}`)
  }

  logTail() {
    return readFileSync(this.logFile, 'utf8').slice(-2000)
  }

  /** The log is opened for appending, so it may be cut while the child writes; keeps a long run from filling a disk. */
  cutLog() {
    truncateSync(this.logFile)
  }

  /** User and system time of the whole process, all threads, in microseconds (steps of 10 ms). */
  cpuMicroseconds() {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * MICROSECONDS_PER_TICK
  }

  residentBytes() {
    return Number(readFileSync(`/proc/${this.pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES
  }

  async stop() {
    if (!running.has(this)) return
    this.child.kill('SIGTERM')
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_LIMIT_MS)
    await this.exited
    clearTimeout(timer)
  }
}

/** Ends all children, politely first. */
export async function stopAll() {
  await Promise.all([...running].map((service) => service.stop()))
}
