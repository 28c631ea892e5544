import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { ConfigStore } from '../../src/config/config-store.js'
import { ClientDisconnect } from '../../src/core/request-context.js'
import { SpooledFile } from '../../src/core/spooled-file.js'
import { confinement } from '../../src/document/parser-confinement.js'
import { ParserPool } from '../../src/document/parser-pool.js'
import { PARSER_ENTRY_PATH, type ParserProgram } from '../../src/document/parser-process.js'
import type { ParsedDocument } from '../../src/document/parser.js'
import { createLogging } from '../../src/observability/logger.js'
import { parseConfig } from './config.js'

/** Does what documents tell it to: `echo:text`, `hang`, `leave:3`, `fault:broken`… */
export const FAKE_ENGINE = fileURLToPath(new URL('fake-engine.mjs', import.meta.url))

/** The built one. Throws when there is none. */
function realEngine(): string {
  if (existsSync(PARSER_ENTRY_PATH)) return PARSER_ENTRY_PATH
  throw new Error(`${PARSER_ENTRY_PATH} is missing: run "npm run build" first ("npm test" does).`)
}

const configOf = (sections: object) =>
  parseConfig(
    JSON.stringify({ auth: { keys: [{ id: 'test', key: 'never-used-by-a-test' }] }, channels: [], ...sections }),
    {},
  )

export interface ParseWish {
  /** Whose document it is; default `a`. */
  readonly keyId?: string
  readonly contentType?: string
  readonly name?: string
  readonly baseUrl?: string
  readonly disconnect?: ClientDisconnect
  /** Default: half a minute. */
  readonly timeoutMs?: number
  /** Called once the pool has it. */
  readonly onBegun?: () => void
}

/** A pool as the gateway has one, and everything around it that a test looks at. */
export interface TestPool {
  readonly pool: ParserPool
  /** Spools the document, has it read and gives the spool back. */
  parse(document: string | Uint8Array, wish?: ParseWish): Promise<ParsedDocument>
  /** The sections of the configuration from now on. */
  reload(sections: object): Promise<void>
  readonly logText: () => string
  close(): Promise<void>
}

export const MEBIBYTE = 1_048_576
/** The fake engine needs none to speak of. */
export const DOCUMENTS = { processes: 1, queue: 4, memoryBytes: 512 * MEBIBYTE }

/** A pool of one process and a line of four, unless a test starts another one. */
export class ParserPoolLab {
  pool!: TestPool

  /**
   * With these settings of `documents`, other sections and, in place of the fake one, this engine. Stand-ins for the engine use
   * files, and are not under Node's permissions.
   */
  readonly start = (documents: object = {}, others: object = {}, entry = FAKE_ENGINE): void => {
    const program = { entry, confinement: { ...confinement(), hasPermissions: false } }
    this.pool = startPool(program, { documents: { ...DOCUMENTS, ...documents }, ...others })
  }

  close(): Promise<void> {
    return this.pool.close()
  }
}

export function startPool(program: ParserProgram, sections: object = {}): TestPool {
  let latest = configOf(sections)
  const store = new ConfigStore(latest, () => Promise.resolve({ config: latest, file: '' }))
  const lines = new PassThrough()
  let log = ''
  lines.on('data', (chunk: Buffer) => {
    log += chunk.toString()
  })
  const pool = new ParserPool(store, program, createLogging('debug', lines).logger)
  return {
    pool,
    parse: (document, wish) => parseOnce(pool, document, wish),
    reload: async (next) => {
      latest = configOf(next)
      await store.reload()
    },
    logText: () => log,
    close: () => pool.onApplicationShutdown(),
  }
}

async function parseOnce(
  pool: ParserPool,
  document: string | Uint8Array,
  wish: ParseWish = {},
): Promise<ParsedDocument> {
  const { contentType = '', name = '', baseUrl = '', disconnect = new ClientDisconnect(), timeoutMs = 30_000 } = wish
  const sharer = { keyId: wish.keyId ?? 'a' }
  const spool = new SpooledFile()
  try {
    await spool.append(Buffer.from(document))
    await spool.finish()
    const deadlineAtMs = performance.now() + timeoutMs
    const parsing = pool.parse({ spool, contentType, name, baseUrl }, { disconnect, deadlineAtMs, sharer })
    wish.onBegun?.()
    return await parsing
  } finally {
    await spool.remove()
  }
}

/** The Markdown in the content of a document. */
export const markdownOf = ({ content }: ParsedDocument): string =>
  (JSON.parse(`{${content.toString()}}`) as { markdown: string }).markdown

/** Of the process that read a document for the fake engine. */
export const processOf = ({ metadata }: ParsedDocument): number => Number(metadata.siteName)

/** Whether a process runs: one that is dead but that its parent has not asked about yet does not. */
export function isAlive(pid: number): boolean {
  try {
    // After the name, which is in brackets, comes the state.
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** Whether the process still exists for the kernel, as it does until its parent has waited for it. */
export const isOnRecord = (pid: number): boolean => existsSync(`/proc/${pid}`)

/** Those that the main thread of a process started and that are on record. */
export const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

/** What stands in for the readers: documents are commands here. */
const ENGINE = `
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
const output = (markdown) => ({
  kind: 'text', html: '', markdown, pages: 1,
  metadata: {
    ...{ title: '', description: '', keywords: '', siteName: String(process.pid), favicon: '' },
    ...{ language: '', warnings: [] },
  },
})
const kept = []
const tried = async (act) => {
  try {
    return output('done ' + (await act()))
  } catch (error) {
    return output('refused ' + error.code)
  }
}
const commands = {
  peek: () => tried(() => readFileSync('/proc/' + process.ppid + '/environ').length),
  file: () => tried(() => readFileSync('/etc/hostname').length),
  write: (path) => tried(() => writeFileSync(path, 'x')),
  program: () => tried(async () => (await import('node:child_process')).execFileSync('/bin/true').length),
  thread: () => tried(async () => {
    const { Worker } = await import('node:worker_threads')
    return new Worker('', { eval: true, execArgv: [] }).threadId
  }),
  connect: (port) => tried(() => new Promise((resolve, reject) => connect(port, '127.0.0.1', () => resolve('')).on('error', reject))),
  echo: (text) => output(text),
  spin: () => { process.stderr.write('begun'); for (;;); },
  bytes: () => { for (;;) kept.push(Buffer.alloc(16_000_000, 1)) },
  objects: () => { for (;;) kept.push({ one: kept.length, other: [kept.length] }) },
  deep: () => { const dive = (level) => dive(level + 1) + 1; return output(String(dive(0))) },
  forget: (text) => { void Promise.reject(new Error('forgotten')); return new Promise((resolve) => setTimeout(resolve, 10, output(text))) },
  chatter: (text) => { console.log('x'.repeat(1_000_000)); console.error('y'.repeat(1_000_000)); return output(text) },
}
export async function readDocument({ bytes }) {
  const [command, rest] = Buffer.from(bytes).toString().split(':')
  return commands[command](rest)
}
`

/** The process of the built engine with other readers in it; the directory is the caller's to remove. */
export async function engineShell(): Promise<{ readonly directory: string; readonly entry: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'engine-shell-'))
  await cp(dirname(realEngine()), directory, { recursive: true })
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  await writeFile(join(directory, 'engine.js'), ENGINE)
  return { directory, entry: join(directory, 'process.js') }
}
