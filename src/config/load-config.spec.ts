import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { loadConfigFile, parseConfig } from '../../test/support/config.js'
import { faultsOf } from '../../test/support/routing.js'
import { ConfigError, FAULTED, FaultList } from './faults.js'
import type { Variables } from './environment.js'
import { interpolate } from './load-config.js'

const json = JSON.stringify

describe('the configuration', () => {
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

  it('forgets an access key for its hash, and takes a hash as it is', () => {
    const hash = sha256('other key')
    const yaml = json({
      auth: {
        keys: [
          { id: 'a', key: 'k|1' },
          { id: 'b', key: `sha256:${hash.toUpperCase()}`, models: ['*'] },
        ],
      },
    })
    expect(parseConfig(yaml, {}).auth.keys).toEqual([
      { id: 'a', sha256: sha256('k|1') },
      { id: 'b', sha256: hash, models: ['*'] },
    ])
  })

  it('takes limits of keys, and those of keys without any of their own', () => {
    const limits = {
      requestsPerMinute: 600,
      tokensPerMinute: '100000',
      audioSecondsPerMinute: 1,
      concurrency: 4,
      realtimeSessions: 2,
    }
    const keys = [
      { id: 'a', key: 'one', limits },
      { id: 'b', key: 'two', limits: {} },
    ]
    const { auth } = parseConfig(json({ auth: { keys, defaultLimits: { concurrency: 1_000_000 } } }), {})
    expect(auth.keys.map((key) => key.limits)).toEqual([{ ...limits, tokensPerMinute: 100_000 }, {}])
    expect(auth.defaultLimits).toEqual({ concurrency: 1_000_000 })
  })

  it.each(['requestsPerMinute', 'tokensPerMinute', 'audioSecondsPerMinute', 'concurrency', 'realtimeSessions'])(
    'refuses %s that is no whole number above 0 or beyond reason, with its place',
    (name) => {
      for (const bad of [0, -1, 1.5, 'many', 1_000_000_001, true]) {
        const auth = { keys: [{ id: 'a', key: 'one', limits: { [name]: bad } }], defaultLimits: { [name]: bad } }
        expect([bad, faultsOf(json({ auth })).map((fault) => fault.split(':')[0])]).toEqual([
          bad,
          [`auth.keys[0].limits.${name}`, `auth.defaultLimits.${name}`],
        ])
      }
    },
  )

  it('refuses malformed keys, ids and globs, each with its place', () => {
    const keys = [
      { id: 'a b', key: 'x' },
      { id: 'x'.repeat(65), key: 'two words' },
      { id: 'c', key: 'y'.repeat(513) },
      { id: 'd', key: 'sha256:abc' },
      { id: 'e', key: 12345, models: [] },
      { id: 'f', models: ['', 'gpt-?', 'a*'] },
    ]
    expect(faultsOf(json({ auth: { keys } })).map((fault) => fault.split(': ')[0])).toEqual([
      'auth.keys[0].id',
      'auth.keys[1].id',
      'auth.keys[1].key',
      'auth.keys[2].key',
      'auth.keys[3].key',
      'auth.keys[4].key',
      'auth.keys[4].models',
      'auth.keys[5].key',
      'auth.keys[5].models[0]',
      'auth.keys[5].models[1]',
    ])
  })

  it.each(['-', 'caller'])(
    'refuses %s as the id of a key: it stands for callers without a key in logs, usage and limits',
    (id) => {
      const auth = (name: string): string => json({ auth: { keys: [{ id: name, key: 'one' }] } })
      expect(faultsOf(auth(id))).toEqual([expect.stringMatching(/^auth\.keys\[0\]\.id: .*mean somebody else$/)])
      expect(faultsOf(auth(`${id}1`))).toEqual([])
      // Channels may have these ids.
      expect(faultsOf(json({ channels: [{ id, provider: 'p1', baseUrl: 'http://h', credentials: 'k' }] }))).toEqual([])
    },
  )

  it('refuses the same id or the same key twice, also when one of them is given as a hash', () => {
    const keys = [
      { id: 'a', key: 'one' },
      { id: 'b', key: `sha256:${sha256('one')}` },
      { id: 'a', key: 'two' },
    ]
    expect(faultsOf(json({ auth: { keys } }))).toEqual([
      'auth.keys[2].id: is the same as auth.keys[0].id',
      'auth.keys[1].key: is the same as auth.keys[0].key',
    ])
  })

  it('checks added catalogue rows', () => {
    const models = [
      { id: 'org/whisper:1', class: 'stt-standard', providers: ['p4'] },
      { id: 'org/whisper:1', class: 'speech', providers: [] },
      { id: 'glob-*', class: 'chat', providers: ['p1', 'p9'] },
      'text',
    ]
    const faults = faultsOf(json({ models }))
    expect(faults).toEqual([
      'models[1].id: is the same as models[0].id',
      expect.stringMatching(/^models\[1\]\.class: must be one of tts, /),
      'models[1].providers: must name at least one provider',
      expect.stringMatching(/^models\[2\]\.id: must be a model name/),
      expect.stringMatching(/^models\[2\]\.providers\[1\]: must be one of p1, /),
      'models[3]: must be a map',
    ])
  })

  it('refuses unknown keys at every level', () => {
    const yaml = json({
      sever: {},
      server: { prot: 1 },
      auth: { keys: [{ id: 'a', key: 'k', model: [] }] },
      toString: {},
    })
    expect(faultsOf(yaml)).toEqual([
      'document: unknown key "sever"; did you mean "server"?',
      expect.stringMatching(/^document: unknown key "toString"; allowed: server, limits, /),
      'server: unknown key "prot"; did you mean "port"?',
      'auth.keys[0]: unknown key "model"; did you mean "models"?',
    ])
  })

  it('lets the environment win over the file, and names the variable when it is at fault', () => {
    const yaml = 'server: {port: 1, host: file}\ndatabase: {url: "${NOT_SET}"}\nlogging: {level: nonsense}'
    const env = {
      PORT: '8081',
      HOST: '::1',
      DATABASE_URL: 'postgres://h/${X}',
      REDIS_URL: 'redis://h',
      LOG_LEVEL: 'warn',
    }
    expect(parseConfig(yaml, env)).toMatchObject({
      server: { port: 8081, host: '::1' },
      database: { url: 'postgres://h/${X}' },
      redis: { url: 'redis://h' },
      logging: { level: 'warn' },
    })
    expect(faultsOf('{}', { PORT: 'abc', LOG_LEVEL: 'loud' })).toEqual([
      'PORT: must be an integer from 0 to 65535',
      'LOG_LEVEL: must be one of trace, debug, info, warn, error, fatal, silent',
    ])
  })

  it('takes numbers that come from the environment', () => {
    const yaml =
      'server:\n  port: ${P}\nchannels:\n  - { id: a, provider: p1, baseUrl: "http://h", credentials: k, weight: "${W}" }'
    const config = parseConfig(yaml, { P: '8082', W: '0.5' })
    expect(config.server.port).toBe(8082)
    expect(config.channels[0]?.weight).toBe(0.5)
  })

  it('cannot be changed once it is loaded', () => {
    const config = parseConfig(
      json({
        channels: [
          { id: 'a', provider: 'p2', baseUrl: 'ws://h', credentials: 'a|b', options: { voices: { alloy: 'x' } } },
        ],
      }),
      {},
    )
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
    expect(frozen(config)).toBe(true)
  })
})

describe('load config', () => {
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
      [
        'a bare placeholder in braces',
        'database: { url: ${DB} }\n',
        'inside { } or [ ] a ${NAME} must be put in quotes',
      ],
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
})

describe('a setting', () => {
  const whsec = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
  const BYTES = { min: 1, max: Number.MAX_SAFE_INTEGER }
  const COUNT = { min: 1, max: 1_000_000 }
  const DURATION = { min: 1, max: 2_147_483_647 }
  const PORT = { min: 0, max: 65_535 }

  it.each([
    ['server', 'port', PORT],
    ['server', 'metricsPort', PORT],
    ['server', 'workers', { min: 1, max: 128 }],
    ['limits', 'jsonBodyBytes', BYTES],
    ['limits', 'imageBodyBytes', BYTES],
    ['limits', 'audioFileBytes', BYTES],
    ['limits', 'audioBodyBytes', BYTES],
    ['limits', 'documentBytes', { min: 1, max: 268_435_456 }],
    ['limits', 'realtimeSessions', COUNT],
    ['limits', 'realtimeAudioBytes', BYTES],
    ['limits', 'realtimeFrameBytes', { min: 1, max: 1_073_741_824 }],
    ['limits', 'realtimeFragments', COUNT],
    ['limits', 'realtimeEventsPerSecond', COUNT],
    ['limits', 'realtimePingsPerSecond', COUNT],
    ['timeouts', 'connectMs', DURATION],
    ['timeouts', 'firstByteMs', DURATION],
    ['timeouts', 'idleMs', DURATION],
    ['timeouts', 'totalMs', DURATION],
    ['timeouts', 'shutdownGraceMs', DURATION],
    ['timeouts', 'drainDelayMs', { min: 0, max: 600_000 }],
    ['timeouts', 'realtimeBurstMs', DURATION],
    ['timeouts', 'realtimeStuckMs', DURATION],
    ['timeouts', 'realtimePingMs', DURATION],
    ['timeouts', 'realtimeIdleMs', DURATION],
    ['timeouts', 'realtimeAgeMs', DURATION],
    ['auth', 'keyRefreshMs', { min: 100, max: 4000 }],
    ['auth', 'expectedOutputTokens', { min: 0, max: 1_000_000 }],
    ['breaker', 'failures', { min: 1, max: 1000 }],
    ['admission', 'concurrentRequests', COUNT],
    ['admission', 'bytesInFlight', BYTES],
    ['admission', 'memoryBytes', { min: 67_108_864, max: Number.MAX_SAFE_INTEGER }],
    ['tasks', 'pollIntervalMs', DURATION],
    ['tasks', 'maxAgeMs', BYTES],
    ['tasks', 'reconcileMs', BYTES],
    ['tasks', 'retentionMs', BYTES],
    ['tasks', 'pollsPerChannel', { min: 1, max: 1000 }],
    ['tasks', 'pollsPerSecond', COUNT],
    ['callbacks', 'timeoutMs', DURATION],
    ['callbacks', 'perHost', { min: 1, max: 1000 }],
    ['documents', 'parseMs', DURATION],
    ['documents', 'pages', { min: 1, max: 100_000 }],
    ['documents', 'processes', { min: 1, max: 64 }],
    ['documents', 'queue', { min: 0, max: 10_000 }],
    ['documents', 'memoryBytes', { min: 134_217_728, max: 68_719_476_736 }],
    ['documents', 'fetchesInFlight', { min: 1, max: 10_000 }],
    ['documents', 'cacheMs', { min: 0, max: 2_147_483_647 }],
    ['documents', 'cacheBytes', BYTES],
    ['usage', 'queueRows', COUNT],
    ['usage', 'batchRows', { min: 1, max: 5000 }],
    ['usage', 'batchMs', { min: 1, max: 60_000 }],
    ['usage', 'retentionMs', BYTES],
    ['database', 'maxConnections', { min: 1, max: 1000 }],
    ['redis', 'timeoutMs', { min: 1, max: 10_000 }],
  ])('accepts only whole numbers within range for %s.%s', (section, setting, { min, max }) => {
    for (const good of [min, max, String(min)]) expect(faultsOf(json({ [section]: { [setting]: good } }))).toEqual([])
    for (const bad of [min - 1, max + 1, min + 0.5, '1e3', '0x10', ' 1', 'ten', '', true, [1], {}]) {
      expect([bad, faultsOf(json({ [section]: { [setting]: bad } }))]).toEqual([
        bad,
        [expect.stringMatching(new RegExp(`^${section}\\.${setting}: must be an integer (?:≥|from) ${min}`))],
      ])
    }
  })

  it.each([
    ['server.host', ['::', '10.0.0.1', 'gateway.local'], ['a b', 'http://x', '', 7]],
    [
      'server.publicUrl',
      ['https://x.example', 'http://x:8080/base/'],
      ['wss://x', 'https://x?y', 'https://u:p@x', 'x'],
    ],
    [
      'server.cors.allowedOrigins',
      [
        [],
        ['https://app.example.com', 'http://localhost:3000/'],
        ['*'],
        ['https://*.example.com', 'http://*.example.com:*', 'http://[::1]:*'],
        ['chrome-extension://abcdefghijklmnop'],
      ],
      [
        '*',
        ['https://*'],
        ['https://a.*.example.com'],
        ['https://x.example.com:80:*'],
        ['https://x.example.com/x'],
        ['null'],
        ['app.example.com'],
        ['wss://x'],
        ['https://x?y'],
        ['https://u@x'],
      ],
    ],
    [
      'server.trustedProxies',
      [[], ['10.0.0.0/8', '127.0.0.1', '::1', 'fd00::/8', '0.0.0.0/0', '::/0', '10.0.0.1/32']],
      [
        '10.0.0.0/8',
        ['10.0.0.0/33'],
        ['fd00::/129'],
        ['10.0.0.0/'],
        ['10.0.0/8'],
        ['10.0.0.0/8/8'],
        ['10.0.0.0/-1'],
        ['balancer'],
        [''],
        ['*'],
        ['::ffff:10.0.0.1'],
        ['fe80::1%eth0'],
        [' 10.0.0.1'],
        [10],
      ],
    ],
    ['database.url', ['postgres://u:p#w@h/db', 'postgresql:///db?host=/run'], ['mysql://h/db', 'postgres://', 'h', 5]],
    ['redis.url', ['redis://h:6379/1', 'rediss://:p@h'], ['http://h', 'redis://a b']],
    ['redis.localShare', [0.01, 1, '0.5'], [0, -0.5, 1.1, 'half', true]],
    ['logging.level', ['trace', 'silent'], ['verbose', 'INFO', 3]],
    ['callbacks.secret', [whsec(24), whsec(64)], [whsec(23), whsec(65), 'whsec_', 'whsec_!!', whsec(24).slice(6)]],
    ['callbacks.scheduleMs', [[0], [5, 0, 5]], [[], [-1], [1.5], 5, [2_147_483_648], [null]]],
    [
      'ssrf.allow',
      [['127.0.0.1:9000', '[::1]:80', 'db:1']],
      [['x'], ['x:0'], ['x:65536'], ['[x]:1'], ['a/b:1'], 'x:1'],
    ],
  ])('checks the form of %s', (path, goods, bads) => {
    const withValue = (value: unknown): string =>
      json(path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value))
    for (const good of goods) expect([good, faultsOf(withValue(good))]).toEqual([good, []])
    for (const bad of bads as unknown[]) {
      const faults = faultsOf(withValue(bad))
      expect([bad, faults]).toEqual([bad, [expect.stringContaining(path)]])
    }
  })
})

describe('interpolation', () => {
  function interpolationFaults(document: unknown, env: Variables = {}): string[] {
    const faults = new FaultList()
    interpolate(document, env, faults)
    try {
      faults.throwIfAny()
    } catch (error) {
      return (error as ConfigError).faults.map(({ path, message }) => `${path}: ${message}`)
    }
    return []
  }

  function replaced(document: unknown, env: Variables = {}): unknown {
    const faults = new FaultList()
    const result = interpolate(document, env, faults)
    faults.throwIfAny()
    return result
  }

  it('puts variables into strings at any depth and leaves everything else as it is', () => {
    const document = { a: ['${ONE}', { b: 'x-${ONE}-${TWO}' }], n: 1.5, t: true, none: null, '${ONE}': 'key' }
    expect(replaced(document, { ONE: '1', TWO: '2' })).toEqual({
      a: ['1', { b: 'x-1-2' }],
      n: 1.5,
      t: true,
      none: null,
      '${ONE}': 'key',
    })
  })

  it.each([
    ['${A}', 'given'],
    ['${A:-other}', 'given'],
    ['${MISSING:-other}', 'other'],
    ['${EMPTY:-other}', 'other'],
    ['${MISSING:-http://x:80/y}', 'http://x:80/y'],
    ['$${A}', '${A}'],
    ['$A $ {A} $$', '$A $ {A} $$'],
    ['${MISSING:-}', null],
    ['a${MISSING:-}b', 'ab'],
    ['', ''],
  ])('turns %j into %j', (text, expected) => {
    expect(replaced({ field: text }, { A: 'given', EMPTY: '' })).toEqual({ field: expected })
  })

  it('keeps any secret intact, whatever characters it holds', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (secret) => {
        expect(replaced(['${SECRET}', 'x${SECRET}'], { SECRET: secret })).toEqual([secret, `x${secret}`])
      }),
    )
  })

  it('names the variable and the path when a variable is not set or empty, and goes on', () => {
    const document = { auth: { keys: [{ key: '${TEAM_KEY}' }] }, 'odd key': '${EMPTY}', last: '${A}${B}' }
    expect(interpolationFaults(document, { EMPTY: '' })).toEqual([
      'auth.keys[0].key: the environment variable TEAM_KEY is not set',
      '["…"]: the environment variable EMPTY is not set',
      'last: the environment variable A is not set',
      'last: the environment variable B is not set',
    ])
  })

  it.each(['${', '${}', '${a-b}', '${A', '${A:?no}', '${A:-${B}}', '${ A }'])('refuses the placeholder %j', (text) => {
    const faults = interpolationFaults({ field: text }, { A: 'x', B: 'y' })
    expect(faults).toEqual([expect.stringMatching(/^field: holds a malformed placeholder/)])
  })

  it('marks a faulty value so that it is not reported twice', () => {
    expect(interpolate(['${MISSING}'], {}, new FaultList())).toEqual([FAULTED])
  })

  it('keeps a __proto__ key an ordinary key', () => {
    const document: unknown = JSON.parse('{"__proto__":{"polluted":"${A}"}}')
    const result = replaced(document, { A: 'x' }) as object
    expect(Object.keys(result)).toEqual(['__proto__'])
    expect('polluted' in result).toBe(false)
  })

  it('ends at a value that contains itself', () => {
    const loop: unknown[] = []
    loop.push(loop)
    expect(interpolationFaults({ loop })).toEqual([
      expect.stringMatching(/^loop(\[0\])+: must not be nested deeper than 32 levels$/),
    ])
  })

  it('ends when shared parts multiply', () => {
    let bomb: unknown = Array.from({ length: 100 }, () => 'x')
    for (let level = 0; level < 6; level++) bomb = Array.from({ length: 100 }, () => bomb)
    expect(interpolationFaults({ bomb })).toEqual(['document: must not hold more than 200000 values'])
  })
})
