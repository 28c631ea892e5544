import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runGateway, startParts } from './gateway-process.js'
import { listenOnLoopback, type LoopbackServer } from './loopback-server.js'
import { directoryWithStore } from './stores.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ENGINE = fileURLToPath(new URL('stand-in-docker.sh', import.meta.url))

/** What the engine says to commands whose words match. The first rule that fits holds; what no rule knows goes well. */
export interface Rule {
  readonly on: string
  readonly says?: string
  readonly fails?: boolean
}

/** How `npm run test:image` ended. */
export interface TestImageRun {
  readonly code: number
  readonly output: string
  readonly errors: string
  /** What the engine was asked for, in order. */
  readonly commands: readonly string[]
  /** What lies in its temporary folder afterwards. */
  readonly leftovers: readonly string[]
}

/** Runs scripts/test-image.mjs with engines on its PATH that all play these rules; `[]` = none is there. */
export async function runTestImage(
  rules: readonly Rule[],
  engines: readonly string[] = ['docker', 'podman', 'docker-compose'],
): Promise<TestImageRun> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-stand-in-engine-'))
  const [programs, temporary, notes] = [join(folder, 'bin'), join(folder, 'tmp'), join(folder, 'commands')]
  await Promise.all([mkdir(programs), mkdir(temporary), writeFile(notes, ''), writeRules(join(folder, 'rules'), rules)])
  for (const name of engines) await symlink(ENGINE, join(programs, name))
  const env = {
    // What the script needs of the system is asked for after an engine was found.
    PATH: engines.length === 0 ? programs : `${programs}:/usr/bin:/bin`,
    TMPDIR: temporary,
    PLAY: folder,
  }
  const ended = await new Promise<{ code: number; output: string; errors: string }>((resolve) => {
    const child = execFile(
      process.execPath,
      ['scripts/test-image.mjs'],
      { cwd: ROOT, env },
      (_error, output, errors) => {
        resolve({ code: child.exitCode ?? -1, output, errors })
      },
    )
  })
  const run = {
    ...ended,
    commands: (await readFile(notes, 'utf8')).split('\0').slice(0, -1),
    leftovers: await readdir(temporary),
  }
  await rm(folder, { recursive: true })
  return run
}

async function writeRules(folder: string, rules: readonly Rule[]): Promise<void> {
  for (const [index, { on, says = '', fails = false }] of rules.entries()) {
    const rule = join(folder, String(index).padStart(4, '0'))
    await mkdir(rule, { recursive: true })
    await writeFile(join(rule, 'on'), `${on}\n`)
    await writeFile(join(rule, 'says'), `${says}\n`)
    if (fails) await writeFile(join(rule, 'fails'), '')
  }
}

/** Of the production set, what its published ports say. */
export interface ProductionAnswers {
  readonly ready: object
  readonly stream: string
  readonly channel: string
  readonly limits: object
  /** Of `/admin` where callers connect. */
  readonly adminStatus: number
  /** Of the issued key that operators ask for, how it begins. */
  readonly hint: string
  /** Instances that Prometheus reaches. */
  readonly up: readonly string[]
}

export const GOOD_ANSWERS: ProductionAnswers = {
  ready: { status: 'ready' },
  stream: ['Hel', 'lo', '!'].map((text) => `data: {"text":"${text}"}\n\n`).join('') + 'data: [DONE]\n\n',
  channel: 'p1-main',
  limits: { object: 'limits', shared: true },
  adminStatus: 404,
  hint: 'sk-gw-made',
  up: ['gateway-1:9090', 'gateway-2:9090', 'balancer:8405'],
}

const listen = (serve: (request: IncomingMessage, response: ServerResponse) => void): Promise<LoopbackServer> =>
  listenOnLoopback(
    createServer((request, response) => {
      request.resume().on('end', () => {
        serve(request, response)
      })
    }),
  )

/** The balancer where callers connect. */
export const startCallersPort = (answers: ProductionAnswers): Promise<LoopbackServer> =>
  listen(({ url = '' }, response) => {
    if (url === '/health/ready') response.end(JSON.stringify(answers.ready))
    else if (url === '/v1/limits') response.end(JSON.stringify(answers.limits))
    else if (url.startsWith('/admin')) response.writeHead(answers.adminStatus).end('{}')
    else response.setHeader('x-gateway-channel', answers.channel).end(answers.stream)
  })

/** The balancer where operators connect, and Prometheus: what only this machine reaches. */
export const startOperatorsPort = ({ up, hint }: ProductionAnswers): Promise<LoopbackServer> =>
  listen(({ url = '' }, response) => {
    const result = up.map((instance) => ({ metric: { instance }, value: [0, '1'] }))
    response.end(JSON.stringify(url.startsWith('/api/v1/query') ? { data: { result } } : { hint, data: [] }))
  })

/** What a container of the gateway says of itself. */
export const RIGHTS = { user: 1000, capabilities: '0000000000000000', memoryBytes: 3 * 2 ** 30, writing: 'EROFS' }
export const CONTAINER = {
  State: { Health: { Status: 'healthy' }, ExitCode: 0, OOMKilled: false },
  HostConfig: { ReadonlyRootfs: true },
  Config: { User: 'node' },
}

/** What is made of keys in a container. */
export const KEY = `${GOOD_ANSWERS.hint}-in-a-container`

/** The sandbox's log lines at SIGTERM, and at the end of the stream. */
export const DRAINING = '{"signal":"SIGTERM","msg":"draining"}'
export const STREAM_OVER = '{"requestId":"runs-at-the-stop","status":200,"msg":"request"}'

export const logged = (...lines: readonly string[]): Rule => ({ on: ' logs --no-color \\S+$', says: lines.join('\n') })
export const inspected = (container: object): Rule => ({ on: '^inspect ', says: JSON.stringify([container]) })
export const inside = (rights: object): Rule => ({ on: ' exec -T \\S+ node -p', says: JSON.stringify(rights) })

/** An engine on which everything goes well. */
export interface WellEngine {
  readonly rules: readonly Rule[]
  close(): Promise<unknown>
}

/** The sandbox behind it is a real one; what production says are its answers at best. */
export function startWellEngine(): Promise<WellEngine> {
  return startParts(async (closedAtLast) => {
    const sandbox = closedAtLast(runGateway(await directoryWithStore('data/sandbox')))
    const callers = closedAtLast(await startCallersPort(GOOD_ANSWERS))
    const operators = closedAtLast(await startOperatorsPort(GOOD_ANSWERS))
    const rules = [
      { on: '^compose version --short$', says: '2.29.1' },
      published('sandbox 8080', new URL(await sandbox.listening()).port),
      published('balancer 8080', callers.port),
      published('balancer 8081', operators.port),
      published('prometheus 9090', operators.port),
      inspected(CONTAINER),
      inside(RIGHTS),
      logged(DRAINING, STREAM_OVER),
      { on: ' exec -T gateway-1 node dist/keys-cli.js create ', says: KEY },
    ]
    return { rules }
  })
}

const published = (service: string, port: number | string): Rule => ({
  on: ` port ${service}$`,
  says: `0.0.0.0:${port}`,
})
