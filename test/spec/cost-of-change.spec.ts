import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/gateway-process.js'
import { dataDirectory } from '../support/stores.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const ADDITIONS = join(ROOT, 'test/additions')
const PREPARED_WITHIN_MS = 240_000
const run = promisify(execFile)

/** An entry in a list of the sources, with the import that it needs. */
interface Entry {
  readonly file: string
  readonly before: string
  readonly entry: string
  readonly imported?: string
}

/** What docs/adding-a-provider.md and docs/adding-a-capability.md promise: files that are new, entries in files that exist. */
const COSTS: readonly { readonly name: string; readonly files: number; readonly entries: readonly Entry[] }[] = [
  {
    name: 'chat-upstream',
    files: 2,
    entries: [
      {
        file: 'src/app/providers.ts',
        before: '  P1_MANIFEST,\n',
        entry: '  TOY_MANIFEST,\n',
        imported: "import { TOY_MANIFEST } from '../providers/toy/toy-chat.js'",
      },
    ],
  },
  {
    name: 'translated-upstream',
    files: 3,
    entries: [
      {
        file: 'src/app/providers.ts',
        before: '  P1_MANIFEST,\n',
        entry: '  PARROT_MANIFEST,\n',
        imported: "import { PARROT_MANIFEST } from '../providers/parrot/parrot-chat.js'",
      },
    ],
  },
  {
    name: 'endpoint',
    files: 4,
    entries: [
      {
        file: 'src/config/model-classes.ts',
        before: "  messages: ['messages'],\n",
        entry: "  moderation: ['moderations'],\n",
      },
      {
        file: 'src/app/capabilities.ts',
        before: '  ModelsModule,\n',
        entry: '  ModerationsModule,\n',
        imported: "import { ModerationsModule } from '../moderations/moderations.module.js'",
      },
    ],
  },
  {
    name: 'endpoint-on-toy',
    files: 1,
    entries: [
      {
        file: 'src/providers/toy/toy-chat.ts',
        before: ' chat: ToyChatProvider }',
        entry: ' moderations: ToyModerationsProvider,',
        imported: "import { ToyModerationsProvider } from './toy-moderations.js'",
      },
      { file: 'src/providers/toy/toy-chat.ts', before: " chat: ['toy-1'] }", entry: " moderation: ['toy-moderator']," },
    ],
  },
]

const filesOf = async (addition: string): Promise<string[]> => {
  const entries = await readdir(join(ADDITIONS, addition), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

async function addEntry(copy: string, { file, before, entry, imported }: Entry): Promise<void> {
  const path = join(copy, file)
  const source = await readFile(path, 'utf8')
  if (source.split(before).length !== 2) throw new Error(`${file} has no single ${before}`)
  const listed = source.replace(before, `${entry}${before}`)
  await writeFile(path, imported === undefined ? listed : `${imported}\n${listed}`)
}

/** The sources with all additions in the folder `copy`: linted, types checked, compiled. */
async function buildCopy(copy: string): Promise<void> {
  for (const name of ['src', 'package.json', 'tsconfig.json', '.oxlintrc.json', 'migrations']) {
    // Specs import `test/support`, which is no part of the copy; specs of the additions import nothing outside their folder.
    await cp(join(ROOT, name), join(copy, name), { recursive: true, filter: (path) => !path.endsWith('.spec.ts') })
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  for (const { name, entries } of COSTS) {
    await cp(join(ADDITIONS, name), copy, { recursive: true })
    for (const entry of entries) await addEntry(copy, entry)
  }
  const linter = join(ROOT, 'node_modules/oxlint/bin/oxlint')
  await run(process.execPath, [linter, 'src'], { cwd: copy }).catch((error: unknown) => {
    throw new Error((error as { stdout: string }).stdout)
  })
  await run(process.execPath, [join(ROOT, 'scripts/build.mjs'), copy], { cwd: ROOT })
}

/** The last two columns, new files and entries in lists, of the table of costs in a document. */
async function documentedCosts(document: string): Promise<string[][]> {
  const lines = (await readFile(join(ROOT, 'docs', document), 'utf8')).split('\n')
  const start = lines.findIndex((line) => line.startsWith('|') && line.includes('New files')) + 2
  const rows = lines.slice(start, lines.indexOf('', start))
  return rows.map((row) => row.split('|').slice(-3, -1)).map((cells) => cells.map((cell) => cell.trim()))
}

/** Upstreams of the additions in one server, which remembers the requests. */
async function answer(request: IncomingMessage, response: ServerResponse, seen: object[]): Promise<void> {
  const body = JSON.parse(await text(request)) as Record<string, unknown>
  seen.push({ path: request.url, key: request.headers['x-toy-key'] ?? request.headers.authorization, body })
  const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
  if (request.url === '/squawk' && body['live'] === true) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('data: {"repeat":"Hel"}\n\ndata: {"repeat":"lo"}\n\ndata: {"done":true}\n\n')
    return
  }
  const answers: Readonly<Record<string, object>> = {
    '/toy/chat': { id: 'toy', object: 'chat.completion', choices: [], usage },
    '/toy/moderations': { object: 'list', data: [], usage: { prompt_tokens: 4, total_tokens: 4 } },
    '/squawk': { repeat: body['hear'] },
  }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(answers[request.url ?? '']))
}

const KEY = 'cost-of-change-key'
const seen: { path: string; key: string; body: Record<string, unknown> }[] = []
const closers: (() => unknown)[] = []
let copy: string
let output = ''
let url: string
let metricsPort: number

beforeAll(async () => {
  copy = await temporary(mkdtemp(join(tmpdir(), 'cost-of-change-')))
  await buildCopy(copy)
  const upstream = createServer((request, response) => void answer(request, response, seen)).listen(0, '127.0.0.1')
  closers.push(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  await once(upstream, 'listening')
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  metricsPort = await freePort()
  const channel = (provider: string) => ({ id: provider, provider, baseUrl, credentials: `${provider}-secret` })
  const config = {
    server: { host: '127.0.0.1', port: 0, metricsPort },
    auth: { keys: [{ id: 'builder', key: KEY }] },
    channels: [channel('toy'), channel('parrot')],
    database: {},
    prices: [{ models: ['*'], promptTokens: 1_000_000, completionTokens: 2_000_000 }],
  }
  await writeFile(join(copy, 'gateway.yaml'), JSON.stringify(config))
  // With an empty store in it: making one takes longer than a test may wait.
  const environment = { PATH: process.env['PATH'], GATEWAY_DATA: await temporary(dataDirectory()) }
  const gateway = spawn(process.execPath, [join(copy, 'dist/main.js')], { cwd: copy, env: environment })
  closers.push(async () => {
    if (gateway.exitCode === null && gateway.kill('SIGTERM')) await once(gateway, 'exit')
  })
  url = await new Promise((resolve, reject) => {
    gateway.once('exit', () => {
      reject(new Error(output))
    })
    for (const stream of [gateway.stdout, gateway.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? []
        if (address !== undefined) resolve(address)
      })
    }
  })
}, PREPARED_WITHIN_MS)

afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

/** The folder, which is removed at the end. */
async function temporary(made: Promise<string>): Promise<string> {
  const folder = await made
  closers.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const get = async (path: string): Promise<unknown> =>
  (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${KEY}` } })).json()

const post = async (path: string, body: object) => {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, text: await response.text(), id: response.headers.get('x-request-id') }
}

const messages = [{ role: 'user', content: 'Hello' }]

describe('The cost of a change', () => {
  it.each(COSTS)('is $files new files of $name, beside entries in lists', async ({ name, files }) => {
    expect(await filesOf(name)).toHaveLength(files)
  })

  it.each([
    ['adding-a-provider.md', ['chat-upstream', 'translated-upstream', 'endpoint-on-toy']],
    ['adding-a-capability.md', ['endpoint']],
  ])('is what %s says', async (document, names) => {
    const costs = names.map((name) => COSTS.find((each) => each.name === name)).filter((cost) => cost !== undefined)
    const shown = (file: string): string =>
      file.startsWith('src/providers/') ? "that provider's manifest" : `\`${file}\``
    const entriesOf = (entries: readonly Entry[]): Set<string> => new Set(entries.map(({ file }) => shown(file)))
    expect(await documentedCosts(document)).toEqual(
      costs.map(({ files, entries }) => [String(files), [...entriesOf(entries)].join(', ')]),
    )
  })

  it('of an upstream whose dialect is that of the endpoint gives relayed chat', async () => {
    const { status, text } = await post('/v1/chat/completions', { model: 'toy-1', messages, later: 1 })
    expect([status, JSON.parse(text)]).toMatchObject([200, { id: 'toy', usage: { total_tokens: 8 } }])
    expect(seen.at(-1)).toEqual({ path: '/toy/chat', key: 'toy-secret', body: { model: 'toy-1', messages, later: 1 } })
  })

  it('of an upstream with a dialect of its own gives translated chat, whole and streamed', async () => {
    const whole = await post('/v1/chat/completions', { model: 'parrot-1', messages })
    expect(JSON.parse(whole.text)).toMatchObject({ model: 'parrot-1', choices: [{ message: { content: 'Hello' } }] })
    const streamed = await post('/v1/chat/completions', { model: 'parrot-1', messages, stream: true })
    const data = streamed.text.split('\n\n').filter((frame) => frame.startsWith('data: '))
    expect(data).toHaveLength(4)
    expect(data[1]).toContain('"content":"lo"')
    expect(data[3]).toBe('data: [DONE]')
  })

  it('of a translation that cannot say something is an error that names it, before the upstream is called', async () => {
    const before = seen.length
    const refused = await post('/v1/chat/completions', { model: 'parrot-1', messages, tools: [] })
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([400, { error: { param: 'tools' } }])
    expect(seen).toHaveLength(before)
  })

  it('of an endpoint gives one that is served, checked and documented', async () => {
    const served = await post('/v1/moderations', { model: 'toy-moderator', input: 'Hello' })
    expect([served.status, JSON.parse(served.text)]).toMatchObject([200, { object: 'list' }])
    const refused = await post('/v1/moderations', { model: 'toy-moderator' })
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([400, { error: { param: 'input' } }])
    expect(await get('/docs/openapi.json')).toMatchObject({
      paths: { '/v1/moderations': { post: { operationId: 'createModerations', tags: ['moderations'] } } },
      components: { schemas: { ModerationsRequest: { required: ['model', 'input'] } } },
    })
    expect(await get('/v1/models')).toMatchObject({
      data: expect.arrayContaining([expect.objectContaining({ id: 'toy-moderator' })]),
    })
  })

  const CHAT = '/v1/chat/completions'
  const STREAMED = { messages, stream: true }
  // The parrot says nothing of its usage: the gateway estimates nine tokens of the request, and two of the answer.
  it.each([
    { what: 'toy-1', path: CHAT, body: { model: 'toy-1', messages }, of: ['chat', 'toy'], cost: '13' },
    { what: 'parrot-1', path: CHAT, body: { model: 'parrot-1', messages }, of: ['chat', 'parrot'], cost: '13' },
    { what: 'its stream', path: CHAT, body: { model: 'parrot-1', ...STREAMED }, of: ['chat', 'parrot'], cost: '13' },
    {
      what: 'toy-moderator',
      path: '/v1/moderations',
      body: { model: 'toy-moderator', input: 'Hello' },
      of: ['moderation', 'toy'],
      cost: '4',
    },
  ])('includes billing and measuring: $what', async ({ path, body, of: [usageClass, channel], cost }) => {
    const { id } = await post(path, body)
    const records = async (): Promise<readonly { request_id: string }[]> =>
      ((await get('/v1/usage/records')) as { data: { request_id: string }[] }).data
    let record: object | undefined
    // The first question opens the store, which answers once it is open.
    await eventually(async () => {
      record = (await records()).find((each) => each.request_id === id)
      return record !== undefined
    }, records)
    const { model } = body
    expect(record).toMatchObject({ route: path, model, channel, outcome: 'ok', pricing: 'priced', cost })
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    expect(metrics).toMatch(new RegExp(`^gateway_requests_total\\{route="${path}",[^}]*"200"[^}]*\\} [1-9]`, 'm'))
    expect(metrics).toMatch(
      new RegExp(`^gateway_usage_cost_total\\{class="${usageClass}",channel="${channel}"\\} [1-9]`, 'm'),
    )
  })

  it('includes its own specs, which pass', async () => {
    const config = JSON.stringify({
      rootDir: copy,
      testMatch: ['**/src/providers/{toy,parrot}/*.spec.ts'],
      runtime: join(ROOT, 'test/runner/runtime.cjs'),
      testEnvironment: join(ROOT, 'test/runner/environment.cjs'),
      transform: {},
      injectGlobals: false,
    })
    const jest = join(ROOT, 'node_modules/jest/bin/jest.js')
    const { stderr } = await run(process.execPath, [jest, '--config', config], {
      cwd: copy,
    })
    expect(stderr).toContain('Test Suites: 2 passed, 2 total')
  }, 120_000)
})
