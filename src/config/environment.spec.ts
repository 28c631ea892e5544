import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parse } from 'yaml'
import { configSchema, parseConfig } from '../../test/support/config.js'
import { seededRandom } from '../../test/support/eventually.js'
import { faultsOf } from '../../test/support/routing.js'
import { adminFingerprint, estimatedBits, MINIMUM_ADMIN_KEY_BITS } from './auth-schema.js'
import { PROVIDERS } from '../app/providers.js'
import { configWarnings, handedOver } from './config-store.js'
import {
  environmentConfig,
  readEnvironment,
  readVariable,
  sandboxEnvironmentConfig,
  type Variables,
} from './environment.js'
import { settingsOf } from './settings-reference.js'

describe('readEnvironment', () => {
  it('gives the defaults when nothing is set', () => {
    expect(readEnvironment({})).toEqual({
      configFile: './gateway.yaml',
      configFileNamed: false,
      dataDirectory: './data',
      production: false,
      inContainer: false,
      inSandbox: false,
      overrides: [],
    })
  })

  it('counts an empty variable as not set', () => {
    const empty = { GATEWAY_CONFIG: '', GATEWAY_DATA: '', NODE_ENV: '', PORT: '', HOST: '', LOG_LEVEL: '' }
    expect(readEnvironment(empty)).toEqual(readEnvironment({}))
  })

  it('reads every variable of the gateway', () => {
    const environment = readEnvironment({
      GATEWAY_CONFIG: '/etc/gateway.yaml',
      GATEWAY_DATA: '/var/lib/gateway',
      NODE_ENV: 'production',
      PORT: '8081',
      HOST: '127.0.0.1',
      DATABASE_URL: 'postgres://db/gateway',
      REDIS_URL: 'redis://cache',
      LOG_LEVEL: 'debug',
      WORKERS: 'auto',
      DRAIN_DELAY_MS: '5000',
      METRICS_PORT: '9091',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    })
    expect(environment).toMatchObject({
      configFile: '/etc/gateway.yaml',
      configFileNamed: true,
      dataDirectory: '/var/lib/gateway',
      production: true,
    })
    expect(environment.overrides.map(({ section, setting, value }) => [`${section}.${setting}`, value])).toEqual([
      ['server.port', '8081'],
      ['server.host', '127.0.0.1'],
      ['database.url', 'postgres://db/gateway'],
      ['redis.url', 'redis://cache'],
      ['logging.level', 'debug'],
      ['server.workers', 'auto'],
      ['timeouts.drainDelayMs', '5000'],
      ['server.metricsPort', '9091'],
      ['observability.otlpUrl', 'http://collector:4318'],
    ])
  })

  it.each([
    ['./data', {}, 'data/sandbox'],
    ['the folder that is named', { GATEWAY_DATA: '/var/lib/gateway/' }, '/var/lib/gateway/sandbox'],
  ])('gives the sandbox a data directory of its own in %s, and changes nothing else', (_, variables, own) => {
    const expected = { ...readEnvironment(variables), dataDirectory: own, inSandbox: true }
    expect(readEnvironment(variables, true)).toEqual(expected)
  })

  it('is what Nest injects for the process', () => {
    expect(environmentConfig()).toEqual(readEnvironment(process.env))
    expect(sandboxEnvironmentConfig()).toEqual(readEnvironment(process.env, true))
    expect(sandboxEnvironmentConfig.KEY).toBe(environmentConfig.KEY)
  })
})

const read = (name: string): string => readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8')
const example = read('gateway.example.yaml')
/** "#name: value" and "#- item" are settings switched off; "# text" is prose. */
const switchedOn = example.replaceAll(/^( *)#(?=\S)/gm, '$1')
const environmentNames = [...read('.env.example').matchAll(/^#?([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name ?? '')
const placeholders = [...switchedOn.replaceAll(/^ *#.*$/gm, '').matchAll(/\$\{([A-Z0-9_]+)/g)].map(
  ([, name]) => name ?? '',
)

/** A value of the right form for every variable an operator has to fill in. */
const filledIn: Record<string, string> = {
  ...Object.fromEntries(environmentNames.map((name) => [name, `value-of-${name}`])),
  // Would break the YAML if it were put into the file's text.
  P2_CREDENTIALS: 'app:#id|"to{ken',
  VIDGEN_CREDENTIALS: 'ak|sk',
  GATEWAY_ADMIN_KEY: 'sk-gw-admin-Wm3vQx8LrT5kZ0pYb7NcJ2sHd9FgAe4',
  CALLBACK_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  DIALECTS_SECRET: 'a secret of at least 32 characters',
  TRANSLATE: 'off',
  DATABASE_URL: 'postgres://user:pass#word@db/gateway',
  REDIS_URL: 'redis://cache:6379',
  PORT: '8081',
  HOST: '127.0.0.1',
  LOG_LEVEL: 'warn',
  WORKERS: 'auto',
  DRAIN_DELAY_MS: '5000',
  METRICS_PORT: '9091',
  METRICS_HOST: '127.0.0.1',
  DOCS: 'public',
  FETCH_DOCUMENTS: 'false',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The values that the example gives a setting, wherever in lists they stand. */
function valuesAt(path: string): readonly unknown[] {
  return path.split('.').reduce<readonly unknown[]>(
    (found, part) => {
      const name = part.replace('[]', '')
      const values = found.flatMap((map) => (isRecord(map) && name in map ? [map[name]] : []))
      return part.endsWith('[]') ? values.flat() : values
    },
    [parse(switchedOn)],
  )
}

describe('gateway.example.yaml', () => {
  const settings = settingsOf(configSchema).map((setting) => ({ ...setting, found: valuesAt(setting.path) }))

  it('is walked down to the options of a channel', () => {
    const paths = settings.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining(['server.port', 'auth.keys[].models', 'channels[].options.unknownTasks', 'redis.url']),
    )
  })

  it('shows every setting', () => {
    expect(settings.filter(({ found }) => found.length === 0).map(({ path }) => path)).toEqual([])
  })

  it('shows every default', () => {
    const wrong = settings.filter(({ path, fallback, found }) => {
      const isStructure = isRecord(fallback) && Object.keys(fallback).length === 0
      // These lists are shown with entries; the text beside them says that none is the default.
      const isShownByExample = ['auth.keys', 'channels', 'models', 'prices'].includes(path)
      return (
        fallback !== undefined &&
        !isStructure &&
        !isShownByExample &&
        !found.some((value) => isDeepStrictEqual(value, fallback))
      )
    })
    expect(wrong.map(({ path }) => path)).toEqual([])
    expect(example.match(/none by default/g)?.length).toBeGreaterThanOrEqual(5)
  })

  it('takes every secret from the environment, or shows a hash of nothing', () => {
    const secrets = settings.filter(({ isSecret }) => isSecret)
    expect(secrets.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['auth.keys[].key', 'auth.adminKey', 'channels[].credentials', 'database.url']),
    )
    const written = secrets.flatMap(({ found }) => found).filter((value) => typeof value === 'string')
    expect(written.length).toBeGreaterThanOrEqual(10)
    expect(written.filter((value) => !/^(?:\$\{\w+\}|sha256:0{64})$/.test(value))).toEqual([])
  })

  it('has a channel for every provider', () => {
    const { channels } = parseConfig(example, { ...filledIn })
    expect(channels.map(({ provider }) => provider)).toEqual(PROVIDERS.map(({ name }) => name))
  })

  it.each([
    ['as it is', example],
    ['with every switched-off line switched on', switchedOn],
  ])('loads without a fault %s, in production too', (_name, text) => {
    const env = { ...filledIn, NODE_ENV: 'production' }
    expect(parseConfig(text, env).database.url).toBe(filledIn['DATABASE_URL'])
  })

  it('comes whole to another process, with every switched-off line switched on', () => {
    const config = parseConfig(switchedOn, { ...filledIn })
    expect(handedOver(deserialize(serialize(config)))).toEqual(config)
  })

  it('has the defaults for everything it does not have to choose', () => {
    const config = parseConfig(example, {
      ...filledIn,
      PORT: '',
      HOST: '',
      DATABASE_URL: '',
      REDIS_URL: '',
      LOG_LEVEL: '',
      WORKERS: '',
      DRAIN_DELAY_MS: '',
      METRICS_PORT: '',
      METRICS_HOST: '',
      DOCS: '',
      FETCH_DOCUMENTS: '',
      OTEL_EXPORTER_OTLP_ENDPOINT: '',
    })
    const defaults = parseConfig('{}', {})
    const { auth, channels, models, prices, callbacks, ...rest } = config
    expect({ ...defaults, ...rest }).toEqual(defaults)
    expect({ ...callbacks, secret: undefined }).toEqual({ ...defaults.callbacks, secret: undefined })
    expect([auth.keys.length, channels.length, models.length, prices.length > 0]).toEqual([1, 8, 1, true])
  })
})

describe('.env.example', () => {
  it('names every variable the gateway reads', () => {
    const asked: string[] = []
    const spy = new Proxy<Record<string, string>>(
      {},
      {
        get: (_target, name) => {
          asked.push(String(name))
          return undefined
        },
      },
    )
    readEnvironment(spy)
    expect(asked.length).toBeGreaterThanOrEqual(8)
    // Each may also come from a file; the text at the top says so once for all.
    const named = asked.filter((name) => !name.endsWith('_FILE'))
    expect(environmentNames).toEqual(expect.arrayContaining(named))
  })

  it('names every variable the example configuration names', () => {
    expect(placeholders.length).toBeGreaterThanOrEqual(10)
    expect(environmentNames).toEqual(expect.arrayContaining(placeholders))
  })

  it('holds no secret: copied and not filled in, the gateway refuses to start and names what is missing', () => {
    const untouched = Object.fromEntries(
      [...read('.env.example').matchAll(/^([A-Z0-9_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
    )
    expect(() => parseConfig(example, untouched)).toThrow(/CALLBACK_SECRET is not set/)
    expect(Object.values(untouched).join('')).toBe('')
  })
})

describe('variable', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'gateway-secrets-'))
  })
  afterAll(() => {
    rmSync(directory, { recursive: true })
  })

  let count = 0
  /** The path of a new file with this content. */
  function fileWith(content: string | Buffer): string {
    count += 1
    const path = join(directory, `path-canary-${count}`)
    writeFileSync(path, content)
    return path
  }

  describe('a variable', () => {
    it.each<[string, Variables, object]>([
      ['set', { KEY: 'value' }, { value: 'value' }],
      ['not set', {}, {}],
      ['empty', { KEY: '' }, {}],
      ['empty, as its file is', { KEY: '', KEY_FILE: '' }, {}],
    ])('that is %s', (_name, env, expected) => {
      expect(readVariable(env, 'KEY')).toEqual(expected)
    })

    it.each([
      ['as it is', 'sk-secret', 'sk-secret'],
      ['without the line end of an editor', 'sk-secret\n', 'sk-secret'],
      ['without the line end of another system', 'sk-secret\r\n', 'sk-secret'],
      ['with every other white space', ' two\nlines\n\n', ' two\nlines\n'],
      ['in any script', 'clé 🔑', 'clé 🔑'],
      ['to the last byte allowed', 'x'.repeat(65_536), 'x'.repeat(65_536)],
    ])('is taken from its file %s', (_name, content, value) => {
      expect(readVariable({ KEY_FILE: fileWith(content) }, 'KEY')).toEqual({ value })
      expect(readVariable({ KEY: '', KEY_FILE: fileWith(content) }, 'KEY')).toEqual({ value })
    })

    it.each<[string, () => string, string]>([
      ['does not exist', () => join(directory, 'path-canary'), 'the file that KEY_FILE names does not exist'],
      ['is a folder', () => directory, 'the file that KEY_FILE names cannot be read (EISDIR)'],
      ['is empty', () => fileWith(''), 'the file that KEY_FILE names is empty'],
      ['holds a line end alone', () => fileWith('\n'), 'the file that KEY_FILE names is empty'],
      [
        'is too large',
        () => fileWith('canary'.repeat(11_000)),
        'the file that KEY_FILE names is larger than 65536 bytes',
      ],
      ['never ends', () => '/dev/zero', 'the file that KEY_FILE names is larger than 65536 bytes'],
      ['is no text', () => fileWith(Buffer.from([0xff, 0xfe])), 'the file that KEY_FILE names must be UTF-8 text'],
    ])('whose file %s has a problem that names neither path nor content', (_name, path, problem) => {
      expect(readVariable({ KEY_FILE: path() }, 'KEY')).toEqual({ problem })
    })

    it('that is given twice has a problem', () => {
      const problem = 'KEY and KEY_FILE are both set; leave one of them out'
      expect(readVariable({ KEY: 'canary', KEY_FILE: fileWith('canary') }, 'KEY')).toEqual({ problem })
    })
  })

  describe('a configuration', () => {
    it('takes secrets from files, in its values and in place of them', () => {
      const config = parseConfig(
        'channels: [{ id: a, provider: p1, baseUrl: "http://h", credentials: "${P1_KEY}" }]\nredis: { url: "${NOT_SET}" }',
        {
          P1_KEY_FILE: fileWith('sk-1\n'),
          DATABASE_URL_FILE: fileWith('postgres://u:p@h/d\n'),
          REDIS_URL_FILE: fileWith('redis://r'),
        },
      )
      expect(config.channels[0]?.credentials).toEqual({ kind: 'own', secret: 'sk-1' })
      expect([config.database.url, config.redis.url]).toEqual(['postgres://u:p@h/d', 'redis://r'])
    })

    it('reports every file that cannot be read, once, by the names of its variables alone', () => {
      const missing = join(directory, 'path-canary')
      const yaml = 'auth: { keys: [{ id: a, key: "${TEAM_KEY:-canary}" }] }\ndatabase: { url: "postgres://canary/d" }'
      expect(
        faultsOf(yaml, { TEAM_KEY_FILE: missing, DATABASE_URL_FILE: missing, PORT: '1', PORT_FILE: missing }),
      ).toEqual([
        'PORT: PORT and PORT_FILE are both set; leave one of them out',
        'DATABASE_URL: the file that DATABASE_URL_FILE names does not exist',
        'auth.keys[0].key: the file that TEAM_KEY_FILE names does not exist',
      ])
    })

    it('judges what came from a file as it would any value', () => {
      expect(faultsOf('{}', { DATABASE_URL_FILE: fileWith('canary') })).toEqual([
        expect.stringMatching(/^DATABASE_URL: must be .*postgres/),
      ])
    })
  })
})

describe('auth.adminKey', () => {
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
  const GOOD = 'sk-gw-admin-Wm3vQx8LrT5kZ0pYb7NcJ2sHd9FgAe4'

  const yamlOf = (adminKey: unknown, keys: object[] = []): string => JSON.stringify({ auth: { adminKey, keys } })
  const withAdminKey = (adminKey: unknown, keys?: object[]) => parseConfig(yamlOf(adminKey, keys), {})
  const faultsWith = (adminKey: unknown, keys?: object[]): readonly string[] => faultsOf(yamlOf(adminKey, keys))

  const TOO_EASY = ['auth.adminKey: is too easy to guess, 128 bits are needed: make one with npm run keys -- admin-key']

  it.each([
    'a',
    'admin',
    'changeme',
    'a'.repeat(512),
    'ab'.repeat(256),
    'password'.repeat(20),
    'Password1!'.repeat(20),
    '0123456789'.repeat(20),
    'abcdefghijklmnopqrstuvwxyz',
    'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789',
    'zyxwvutsrqponmlkjihgfedcba9876543210',
    'qwertyuiopasdfghjklzxcvbnm1234567890',
    'correct-horse-battery-staple-2024-gateway',
    'CorrectHorseBatteryStapleGatewayAdmin',
    'this.is.the.admin.key.of.our.gateway.in.production',
    'sk-gw-admin-secret-key-do-not-share-0001',
    '123e4567-e89b-12d3-a456-426614174000',
    '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d',
    '2026-11-22T06:44:06.000Z-2026-11-22T06:44:07.000Z',
    randomBytes(12).toString('hex'),
    randomBytes(15).toString('base64url'),
  ])('refuses the start with %s, and does not say it', (key) => {
    expect(faultsWith(key)).toEqual(TOO_EASY)
  })

  it.each([GOOD, '?q8F)zR2!mK5$wX9^bT4&nL7*pH3', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934c'])(
    'takes %s, and forgets it for its hash',
    (key) => {
      const { auth } = withAdminKey(key)
      expect(auth.adminKey).toEqual({ sha256: sha256(key), isJudged: true })
    },
  )

  it('takes what openssl and the gateway itself make, whatever it is', () => {
    // The same in every run: one key in some 300,000 does happen to look like words, and is refused.
    const random = seededRandom()
    for (let count = 0; count < 3000; count += 1) {
      const bytes = Buffer.from(Array.from({ length: 32 }, () => Math.floor(random() * 256)))
      expect(estimatedBits(bytes.toString('hex'))).toBeGreaterThanOrEqual(MINIMUM_ADMIN_KEY_BITS)
      expect(estimatedBits(bytes.toString('base64'))).toBeGreaterThanOrEqual(MINIMUM_ADMIN_KEY_BITS)
    }
  })

  it('never counts more than the characters could hold, nor anything for a text said twice', () => {
    const text = fc.string({ minLength: 1, maxLength: 80 })
    fc.assert(
      fc.property(text, (once) => {
        const bits = estimatedBits(once)
        expect(bits).toBeLessThanOrEqual(once.length * Math.log2(new Set(once).size) + 1e-9)
        // What is new at the seam are at most three groups of characters.
        const each = Math.log2(new Set(once).size)
        expect(estimatedBits(once + once)).toBeLessThanOrEqual((once.length + 3) * each + 1e-9)
      }),
    )
  })

  it('takes a hash unseen, with a warning, and is warned of in no other form', () => {
    const hashed = withAdminKey(`sha256:${sha256('weak').toUpperCase()}`)
    expect(hashed.auth.adminKey).toEqual({ sha256: sha256('weak'), isJudged: false })
    expect(configWarnings(hashed).filter((warning) => warning.includes('adminKey'))).toEqual([
      'auth.adminKey is given as a hash: nobody has judged how easily the key is guessed',
    ])
    expect(configWarnings(withAdminKey(GOOD)).filter((warning) => warning.includes('auth'))).toEqual([])
  })

  it.each([12345, true, ['x'], {}, `${GOOD} ${GOOD}`, 'schlüssel', `${GOOD}${'k'.repeat(512)}`, 'sha256:abc'])(
    'is at fault as %j',
    (key) => {
      expect(faultsWith(key)).toEqual([expect.stringMatching(/^auth\.adminKey: must be /)])
    },
  )

  it('is the key of no caller, in whichever form either is written', () => {
    const fault = ['auth.adminKey: must differ from every key of auth.keys']
    expect(faultsWith(GOOD, [{ id: 'a', key: GOOD }])).toEqual(fault)
    expect(faultsWith(`sha256:${sha256(GOOD)}`, [{ id: 'a', key: GOOD }])).toEqual(fault)
    expect(faultsWith(GOOD, [{ id: 'a', key: `sha256:${sha256(GOOD)}` }])).toEqual(fault)
  })

  it('is told apart by a fingerprint that gives away neither key nor hash', () => {
    const print = adminFingerprint({ sha256: sha256(GOOD), isJudged: true })
    expect(print).toMatch(/^admin-[0-9a-f]{8}$/)
    expect(sha256(GOOD)).not.toContain(print.slice(6))
    expect(print).not.toBe(adminFingerprint({ sha256: sha256(`${GOOD}x`), isJudged: true }))
  })
})
