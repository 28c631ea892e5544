import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { ConfigError } from './config-fault.js'
import { loadConfigFile, parseConfig } from './load-config.js'
import type { Variables } from './variable.js'

let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gateway-config-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true })
})

async function write(name: string, content: string | Buffer): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, content)
  return file
}

function messageOf(yaml: string, env: Variables = {}): string {
  try {
    parseConfig(yaml, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return ''
}

describe('loadConfigFile', () => {
  it('gives the configuration and the absolute path of its file', async () => {
    const file = await write('good.yaml', '\ufeffserver:\n  port: ${P:-8081}\n')
    expect(await loadConfigFile(file, {})).toMatchObject({ file, config: { server: { port: 8081 } } })
  })

  it('gives nothing when there is no file', async () => {
    const missing = join(folder, 'missing.yaml')
    expect(await loadConfigFile(missing, {})).toBeUndefined()
    expect(await loadConfigFile(missing, { GATEWAY_CONFIG: missing })).toBeUndefined()
    expect(await loadConfigFile(missing, { NODE_ENV: 'production' })).toBeUndefined()
  })

  it('refuses to start in production without the file that was named, and does not print the name', async () => {
    const missing = join(folder, 'missing.yaml')
    const loading = loadConfigFile(missing, { NODE_ENV: 'production', GATEWAY_CONFIG: missing })
    await expect(loading).rejects.toThrow(
      new ConfigError([{ path: 'configuration file', message: 'the file that GATEWAY_CONFIG names does not exist' }]),
    )
  })

  it('takes a file of exactly 1 MiB and refuses one byte more', async () => {
    const largest = await write('largest.yaml', `{}\n#${' '.repeat(1_048_576 - 4)}`)
    expect(await loadConfigFile(largest, {})).toBeDefined()
    const tooLarge = await write('large.yaml', `{}\n#${' '.repeat(1_048_576 - 3)}`)
    await expect(loadConfigFile(tooLarge, {})).rejects.toThrow('must not be larger than 1048576 bytes')
  })

  it('refuses a folder and bytes that are not text', async () => {
    await mkdir(join(folder, 'folder.yaml'))
    await expect(loadConfigFile(join(folder, 'folder.yaml'), {})).rejects.toThrow('cannot be read (EISDIR)')
    const binary = await write('binary.yaml', Buffer.from([0x61, 0x3a, 0x20, 0xff, 0xfe]))
    await expect(loadConfigFile(binary, {})).rejects.toThrow('must be UTF-8 text')
  })
})

describe('parseConfig', () => {
  it('lists the faults of the file, its placeholders and the environment together, one per line', () => {
    const yaml = 'server: { host: "${A}" }\nlimits: { jsonBodyBytes: 0 }\nserver: {}\nchannels: nothing\n'
    expect(messageOf(yaml, { PORT: 'x' }).split('\n')).toEqual([
      'The configuration has 4 faults:',
      '  line 3, column 1: the same key stands twice in one map',
      '  PORT: must be an integer from 0 to 65535',
      '  limits.jsonBodyBytes: must be an integer ≥ 1',
      '  channels: must be a list',
    ])
  })

  it.each([
    ['an empty file', '', 'document: must be a map'],
    ['comments only', '# nothing\n', 'document: must be a map'],
    ['a list', '- a\n', 'document: must be a map'],
    ['a scalar', 'text', 'document: must be a map'],
    ['broken syntax', 'server:\n  port: [1\nauth: {}\n', 'line '],
    ['a bare placeholder in braces', 'database: { url: ${DB} }\n', 'inside { } or [ ] a ${NAME} must be put in quotes'],
    ['two documents', 'server: {}\n---\nauth: {}\n', 'line 2, column 1: the file must hold one document'],
    ['a tag', 'server: !!set {a}\n', 'line 1, column 9: tags are not supported'],
    ['an alias without anchor', 'server: *none\n', 'document: every alias needs an anchor before it'],
    ['a value that contains itself', 'server: &a [*a]\n', 'must not be nested deeper'],
    ['brackets by the thousand', `server: ${'['.repeat(50_000)}`, 'document: is nested too deeply'],
  ])('refuses %s', (_name, yaml, expected) => {
    expect(messageOf(yaml)).toContain(expected)
  })

  it('reports one slip once, however much the parser stumbles behind it', () => {
    const message = messageOf('server:\n  host: x\ndatabase: { url: ${DB}, a: 1, b: [2] }\n')
    expect(message.split('\n')).toEqual([
      'The configuration has a fault:',
      '  line 3, column 19: not valid YAML; inside { } or [ ] a ${NAME} must be put in quotes',
    ])
  })

  it('names the line of every key that stands twice in a map, and looks at the rest all the same', () => {
    const yaml = 'tasks:\n  maxAgeMs: 1\n  "maxAgeMs": 2\nmodels: [{ id: a, id: b }]\nauth: 5\n'
    expect(messageOf(yaml).split('\n').slice(1)).toEqual([
      '  line 3, column 3: the same key stands twice in one map',
      '  line 4, column 19: the same key stands twice in one map',
      '  auth: must be a map',
      '  models[0].class: is required',
      '  models[0].providers: is required',
    ])
  })

  it('lets hundreds of channels share a block by an alias, but not blocks multiply', () => {
    const channel = (index: number): string =>
      `  - {id: c${index}, provider: p1, baseUrl: "http://h", credentials: k, timeouts: ${index === 0 ? '&slow {idleMs: 9}' : '*slow'}}\n`
    const shared = `channels:\n${Array.from({ length: 500 }, (_, index) => channel(index)).join('')}`
    expect(parseConfig(shared, {}).channels[499]?.timeouts.idleMs).toBe(9)

    const level = (index: number): string => `l${index}: &l${index} [${`*l${index - 1},`.repeat(9)}]\n`
    const bomb = `l0: &l0 [x]\n${Array.from({ length: 9 }, (_, index) => level(index + 1)).join('')}`
    expect(messageOf(bomb)).toContain('no anchor may be used more than 1000 times')
  })

  it('never shows a value, whichever setting it stands in and whatever is wrong', () => {
    const canary = (index: number): string => `CANARY${index}zq9`
    const paths = everyTextSetting(canary)
    for (const wrap of [
      (text: string) => text,
      (text: string) => `a ${text}\n|`,
      (text: string) => `https://u:${text}@h`,
    ]) {
      for (const provider of ['p1', 'p2', 'vidgen', 'imggen', canary(99)]) {
        const yaml = JSON.stringify(paths(wrap, provider))
        expect(messageOf(yaml)).not.toContain('CANARY')
        expect(messageOf(yaml)).toContain('callbacks.secret')
        for (const broken of [`${yaml}]`, yaml.slice(0, -9), yaml.replaceAll('"', ''), yaml.replaceAll(':', ' ')]) {
          expect(messageOf(broken)).not.toBe('')
          expect(messageOf(broken)).not.toContain('CANARY')
        }
      }
    }
  })

  it('never shows a value of the environment', () => {
    const variables = ['PORT', 'HOST', 'DATABASE_URL', 'REDIS_URL', 'LOG_LEVEL', 'KEY']
    const env = Object.fromEntries(variables.map((name) => [name, `CANARY of ${name}`]))
    const message = messageOf('channels: [{id: "${KEY}", credentials: "${KEY}", provider: "${KEY}"}]', env)
    for (const name of variables.slice(0, 5)) expect(message).toContain(`  ${name}: `)
    expect(message).not.toContain('CANARY')
  })
})

/** A document with a canary in every setting that holds text, each made by `wrap`. */
function everyTextSetting(canary: (index: number) => string) {
  return (wrap: (text: string) => string, provider: string): object => {
    let index = 0
    const next = (): string => wrap(canary(index++))
    return {
      server: { host: next(), port: next(), publicUrl: next(), metricsPort: next() },
      limits: { jsonBodyBytes: next() },
      timeouts: { connectMs: next() },
      auth: {
        keys: [
          { id: next(), key: `${next()} `, models: [next(), `${next()}?`] },
          { id: 'x', key: `sha256:${next()}` },
        ],
      },
      channels: [
        {
          id: next(),
          provider,
          baseUrl: next(),
          credentials: `${next()}| |`,
          models: [next()],
          modelMap: { a: next() },
          priority: next(),
          weight: next(),
          options: { voices: { alloy: next() }, realtimeDialect: next(), unknownTasks: next(), pathPrefix: next() },
          timeouts: { idleMs: next() },
        },
      ],
      models: [{ id: `${next()} *`, class: next(), providers: [next()] }],
      ssrf: { allow: [next()] },
      tasks: { pollIntervalMs: next() },
      callbacks: { secret: next(), scheduleMs: [next()], timeoutMs: next() },
      database: { url: next() },
      redis: { url: next() },
      logging: { level: next() },
      'sk-CANARY0123456789abcdef': next(),
    }
  }
}
