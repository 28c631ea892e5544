import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { sendRaw } from '../support/gateway.js'

let gateway: GatewayProcess
let url: string

beforeAll(async () => {
  gateway = runGateway(await emptyDirectory())
  url = await gateway.listening()
})
afterAll(() => gateway.close())

/** The commands of the banner, as a reader would copy them. */
async function commands(): Promise<string[]> {
  await gateway.said(/Copy gateway\.example\.yaml/)
  const unfolded = gateway.output().replaceAll('\\\n', ' ')
  return unfolded.split('\n').flatMap((line) => /^\s*(curl .*)$/.exec(line)?.[1] ?? [])
}

interface Copied {
  readonly url: string
  readonly headers: Headers
  readonly body: string | undefined
  readonly output: string | undefined
  readonly fields: readonly string[]
}

/** The words of a command of the banner, whose quotes are single ones only. */
function copied(command: string): Copied {
  const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
  const after = (flag: string): string[] => words.flatMap((word, at) => (words[at - 1] === flag ? [word] : []))
  const headers = after('-H').map((header): [string, string] => {
    const colon = header.indexOf(':')
    return [header.slice(0, colon), header.slice(colon + 1).trim()]
  })
  return {
    url: words.find((word) => word.startsWith('http')) ?? '',
    headers: new Headers(headers),
    body: after('-d')[0],
    output: after('-o')[0],
    fields: after('-F'),
  }
}

async function formOf(fields: readonly string[]): Promise<FormData> {
  const form = new FormData()
  for (const field of fields) {
    const equals = field.indexOf('=')
    const [name, value] = [field.slice(0, equals), field.slice(equals + 1)]
    if (value.startsWith('@'))
      form.set(name, new Blob([await readFile(join(gateway.directory, value.slice(1)))]), value.slice(1))
    else form.set(name, value)
  }
  return form
}

const hasCurl = await promisify(execFile)('curl', ['--version']).then(
  () => true,
  () => false,
)

/** What the command prints; the same request without curl where there is none. */
async function run(command: string): Promise<string> {
  if (hasCurl) {
    const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: gateway.directory })
    return stdout
  }
  const { url: address, headers, body, fields, output } = copied(command)
  const response = await fetch(address, { method: 'POST', headers, body: body ?? (await formOf(fields)) })
  const bytes = Buffer.from(await response.arrayBuffer())
  if (output === undefined) return bytes.toString()
  await writeFile(join(gateway.directory, output), bytes)
  return ''
}

describe('the command of the package', () => {
  const run = (...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      execFile('bin/multi-model-gateway.mjs', words, (error, stdout, stderr) => {
        resolve({ code: Number(error?.code ?? 0), stdout, stderr })
      })
    })

  it('says its version, and what it can do', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
    expect(await run('--version')).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    expect(await run('--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('as a sandbox') })
  })

  it('passes the further words on to the command that the first one names', async () => {
    expect(await run('keys', '--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('issue') })
  })

  it('starts nothing for what it does not know', async () => {
    expect(await run('sandbox')).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('unknown argument "sandbox"'),
    })
  })
})

describe('started in an empty directory, the gateway', () => {
  it('says where it listens, that it is a sandbox, with which key, and what to try', async () => {
    await gateway.said(/Copy gateway\.example\.yaml/)
    const banner = gateway.output()
    expect(banner).toMatch(/SANDBOX MODE/)
    expect(banner).toContain(`base URL  ${url}/v1`)
    expect(banner).toMatch(/API key {3}sandbox-demo-key/)
    expect(await commands()).toHaveLength(3)
    expect((await commands()).every((command) => command.startsWith(`curl ${url}/v1/`))).toBe(true)
  })

  it('answers the three commands as they are printed', async () => {
    const [chat = '', speech = '', transcription = ''] = await commands()
    expect(JSON.parse(await run(chat))).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: expect.stringContaining('Hello!') } }],
    })
    await run(speech)
    const mp3 = await readFile(join(gateway.directory, 'hello.mp3'))
    expect(mp3.length).toBeGreaterThan(1000)
    expect(mp3.readUInt16BE(0) & 0xffe0).toBe(0xffe0)
    // The transcript proves that the very bytes of the speech were heard.
    const printed = await run(transcription)
    const heard = JSON.parse(printed) as { text: string }
    expect(heard.text).toContain(createHash('sha1').update(mp3).digest('hex').slice(0, 12))
    expect(await readFile('README.md', 'utf8')).toContain(`\n${printed.trim()}\n`)
  })

  it('shows the document of its API as it stands in the repository, with a page to read it', async () => {
    const served: unknown = await (await fetch(`${url}/docs/openapi.json`)).json()
    const inRepository = JSON.parse(await readFile('openapi.json', 'utf8')) as object
    // Where its reader found it.
    expect(served).toMatchObject({ ...inRepository, servers: [{ url: '/' }] })
    for (const file of ['', '/swagger-ui.css', '/swagger-ui-bundle.js'])
      expect([file, (await fetch(`${url}/docs${file}`)).status]).toEqual([file, 200])
  })

  it('says at its address what it is, in two lines or as a page, and where its documents are', async () => {
    const [text, page] = await Promise.all([
      fetch(url),
      fetch(url, { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }),
    ])
    expect([text.status, text.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect((await text.text()).split('\n')).toEqual([
      expect.stringContaining('Base URL: this address with /v1'),
      'Documentation: /docs   OpenAPI: /openapi.json   Status: /health/ready',
      '',
    ])
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await page.text()).toContain('<a href="/openapi.json">OpenAPI</a>')
    const document: unknown = await (await fetch(`${url}/openapi.json`)).json()
    expect(document).toEqual(await (await fetch(`${url}/docs/openapi.json`)).json())
  })

  it('lets pages of this machine use it, and no others', async () => {
    const ask = async (origin: string): Promise<string | null> => {
      const response = await fetch(`${url}/health/live`, { headers: { origin } })
      return response.headers.get('access-control-allow-origin')
    }
    const local = ['http://localhost:3000', 'http://127.0.0.1', 'http://[::1]:5173']
    expect(await Promise.all([...local, 'https://example.com'].map(ask))).toEqual([...local, null])
  })

  it('answers no page that has its own name lead here', async () => {
    const headers = { authorization: 'Bearer sandbox-demo-key', host: 'page.example:8080' }
    const answer = await sendRaw(url, { method: 'GET', path: '/v1/models', headers })
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([400, { error: { code: 'invalid_host' } }])
    for (const host of ['localhost', 'app.localhost:8080', '127.0.0.1', '[::1]:8080'])
      expect([host, (await sendRaw(url, { method: 'GET', path: '/', headers: { host } })).status]).toEqual([host, 200])
  })

  it('hears this machine alone', async () => {
    const { port } = new URL(url)
    // Another address of the same machine: whoever listens on all addresses hears it, too.
    await expect(fetch(`http://127.0.0.2:${port}/health/live`)).rejects.toMatchObject({
      cause: { code: 'ECONNREFUSED' },
    })
    const headers = { 'x-forwarded-for': '203.0.113.1' }
    for (const path of ['/docs/openapi.json', '/openapi.json']) {
      const { status, text } = await sendRaw(url, { method: 'GET', path, headers })
      expect([path, status, JSON.parse(text)]).toMatchObject([path, 404, { error: { code: 'not_found' } }])
    }
    expect((await sendRaw(url, { method: 'GET', path: '/', headers })).text).not.toContain('/docs')
  })

  it('fetches no documents from outside', async () => {
    const body = JSON.stringify({ url: 'https://example.com/' })
    const headers = { authorization: 'Bearer sandbox-demo-key' }
    const answer = await sendRaw(url, { path: '/v1/document/parse', headers, body })
    expect([answer.status, JSON.parse(answer.body.toString())]).toMatchObject([
      400,
      { code: 1201, message: expect.stringContaining("'url'") },
    ])
  })

  it('marks every answer, good or bad, as one of the sandbox', async () => {
    const headers = { authorization: 'Bearer sandbox-demo-key' }
    const requests = [
      { method: 'GET', path: '/health/live', status: 200 },
      { method: 'GET', path: '/health/ready', status: 200 },
      { method: 'GET', path: '/v1/models', status: 200, headers },
      { method: 'GET', path: '/v1/models', status: 401, headers: { authorization: undefined } },
      { method: 'GET', path: '/nowhere', status: 404, headers },
      { method: 'DELETE', path: '/v1/chat/completions', status: 405, headers },
      { method: 'POST', path: '/v1/chat/completions', status: 400, headers, body: '{' },
      { method: 'POST', path: '/v1/messages', status: 400, headers, body: '{}' },
      { method: 'POST', path: '/v1/audio/speech', status: 413, headers, body: Buffer.alloc(11_000_000) },
    ]
    for (const { status, ...request } of requests) {
      const answer = await sendRaw(url, request)
      expect({ request: request.path, status: answer.status, sandbox: answer.headers['x-gateway-sandbox'] }).toEqual({
        request: request.path,
        status,
        sandbox: 'true',
      })
    }
  })

  it('streams messages and chat', async () => {
    const headers = { authorization: 'Bearer sandbox-demo-key' }
    const body = { max_tokens: 50, messages: [{ role: 'user', content: 'Hello!' }] }
    for (const [path, model, word] of [
      ['/v1/messages', 'claude-sonnet-4-6', 'event: message_stop'],
      ['/v1/chat/completions', 'gpt-4o-mini', 'data: [DONE]'],
    ] as const) {
      const answer = await sendRaw(url, { path, headers, body: JSON.stringify({ ...body, model, stream: true }) })
      expect([answer.status, answer.headers['x-gateway-sandbox']]).toEqual([200, 'true'])
      expect(answer.text).toContain(word)
    }
  })

  /** Those of `npm run clients` that need no package but the ones of the tests. */
  it.each(['openai', 'anthropic'])('serves every call of the example of %s', async (client) => {
    const example = `examples/clients/javascript/${client}.mjs`
    const { PATH = '' } = process.env
    const env = { PATH, GATEWAY_URL: url, GATEWAY_KEY: 'sandbox-demo-key' }
    const { stdout } = await promisify(execFile)(process.execPath, [example], { env })
    const features = [...(await readFile(example, 'utf8')).matchAll(/'(ok [a-z-]+)'/g)].map(([, line]) => line)
    expect(features.length).toBeGreaterThanOrEqual(6)
    expect(stdout.split('\n').filter((line) => line.startsWith('ok '))).toEqual(features)
  })

  it('has a command for all examples, which does not call a failure what this machine lacks', async () => {
    const command = ['scripts/clients.mjs', '--only', 'go/openai']
    const { stdout } = await promisify(execFile)(process.execPath, command, { env: { PATH: '/nowhere' } })
    expect(stdout).toMatch(/^\| go\/openai \|.* NOT RUN: go is not installed \|$/m)
    const columns = 'chat | stream | tools | speech | transcription | responses | models'
    expect(stdout.split('\n')).toContain(`| Client | ${columns} |  |`)
  })

  it('writes nothing into its directory that it was not asked for', async () => {
    expect((await readdir(gateway.directory)).filter((name) => name !== 'data')).toEqual(['hello.mp3'])
  })
})

describe('The bundles', () => {
  it('keep the names of modules, DTOs, errors and controllers', async () => {
    const textOf = async (folder: string, options: { readonly recursive: boolean }): Promise<string> => {
      const files = (await readdir(folder, options)).filter((name) => /\.(?:js|ts)$/.test(name))
      return (await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))).join('\n')
    }
    const sources = await textOf('src', { recursive: true })
    const names = new Set(
      [...sources.matchAll(/\bclass (\w+(?:Module|Dto|Error|Controller))\b/g)].map(([, name]) => name),
    )
    const bundles = await textOf('dist', { recursive: false })
    const named = [...names].filter((name) => new RegExp(`\\b(?:${name} ?= ?class|class ${name})\\b`).test(bundles))
    expect(named.length).toBeGreaterThan(60)
    for (const name of names) expect(bundles).not.toMatch(new RegExp(`\\bclass _${name}\\b`))
  })
})
