import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseConfig } from '../../test/support/config.js'
import { cpuMs } from '../../test/support/eventually.js'
import { faultsOf } from '../../test/support/routing.js'
import { checked, ConfigError, describeUnknownKey, FaultList } from './faults.js'
import { decimal, distinct, hostAndPort, identifier, strictMap, workers } from './value-types.js'

const json = JSON.stringify

describe('the configuration', () => {
  it('has the contract defaults when the file sets nothing', () => {
    expect(parseConfig('{}', {})).toEqual({
      server: {
        host: '0.0.0.0',
        port: 8080,
        docs: 'local',
        metricsPort: 9090,
        cors: { allowedOrigins: [], allowCredentials: false, maxAgeSeconds: 7200 },
        realtimeClientDialect: 'auto',
        workers: 1,
        explainHeaders: true,
        trustedProxies: [],
      },
      limits: {
        jsonBodyBytes: 10_485_760,
        imageBodyBytes: 62_914_560,
        audioFileBytes: 26_214_400,
        audioBodyBytes: 28_311_552,
        documentBytes: 26_214_400,
        realtimeSessions: 1000,
        realtimeAudioBytes: 15_728_640,
        realtimeFrameBytes: 22_020_096,
        realtimeFragments: 1024,
        realtimeEventsPerSecond: 500,
        realtimePingsPerSecond: 20,
        realtimePauseBytes: 1_048_576,
        realtimeCloseBytes: 4_194_304,
      },
      timeouts: {
        connectMs: 5000,
        firstByteMs: 120_000,
        idleMs: 60_000,
        totalMs: 570_000,
        shutdownGraceMs: 30_000,
        drainDelayMs: 0,
        realtimeBurstMs: 30_000,
        realtimeStuckMs: 10_000,
        realtimePingMs: 20_000,
        realtimeIdleMs: 300_000,
        realtimeAgeMs: 3_480_000,
      },
      auth: { keys: [], expectedOutputTokens: 1000, keyRefreshMs: 2000 },
      channels: [],
      models: [],
      dialects: { translate: 'off', rememberThinking: true, keepResponses: true },
      breaker: { failures: 3, coolDownMs: 5000, maximumCoolDownMs: 300_000 },
      admission: {
        concurrentRequests: 10_000,
        bytesInFlight: 314_572_800,
        callerShare: 0.5,
        loopDelayHighMs: 100,
        loopDelayLowMs: 5,
        memoryHighShare: 0.9,
        memoryLowShare: 0.8,
      },
      ssrf: { allow: [] },
      tasks: {
        pollIntervalMs: 5000,
        maxAgeMs: 86_400_000,
        reconcileMs: 600_000,
        retentionMs: 2_592_000_000,
        pollsPerChannel: 16,
        pollsPerSecond: 250,
      },
      callbacks: {
        scheduleMs: [0, 5000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000],
        timeoutMs: 15_000,
        perHost: 2,
      },
      documents: {
        defaultTimeoutMs: 30_000,
        maximumTimeoutMs: 120_000,
        parseMs: 15_000,
        pages: 500,
        processes: 2,
        queue: 4,
        fetch: true,
        memoryBytes: 805_306_368,
        fetchesInFlight: 32,
        cacheMs: 3_600_000,
        cacheBytes: 67_108_864,
      },
      usage: { queueRows: 50_000, batchRows: 500, batchMs: 1000, retentionMs: 7_776_000_000 },
      prices: [],
      database: { maxConnections: 10 },
      redis: { timeoutMs: 250, localShare: 0.5 },
      logging: { level: 'info' },
      observability: { metricsHost: '127.0.0.1', otlpHeaders: {}, traceSampleRatio: 1 },
    })
  })

  it('takes a section whose lines are all commented out for an absent one', () => {
    expect(parseConfig('server:\nchannels:\nauth:\n  keys:\n', {})).toEqual(parseConfig('{}', {}))
  })

  it('closes a session for a slow reader only above the point where it is waited for', () => {
    const limits = (realtimePauseBytes: number, realtimeCloseBytes: number): string[] =>
      faultsOf(json({ limits: { realtimePauseBytes, realtimeCloseBytes } }))
    expect(limits(100, 101)).toEqual([])
    const fault = 'limits.realtimeCloseBytes: must be greater than limits.realtimePauseBytes'
    expect([limits(100, 100), limits(101, 100)]).toEqual([[fault], [fault]])
  })

  it('takes watermarks of admission only where the low one is below the high one', () => {
    const faults = (admission: object): string[] => faultsOf(json({ admission }))
    expect(faults({ loopDelayHighMs: 6, loopDelayLowMs: 5, memoryHighShare: 0.02, memoryLowShare: 0.01 })).toEqual([])
    expect(faults({ loopDelayHighMs: 5 })).toEqual([
      'admission.loopDelayLowMs: must be less than admission.loopDelayHighMs',
    ])
    expect(faults({ memoryLowShare: 0.9 })).toEqual([
      'admission.memoryLowShare: must be less than admission.memoryHighShare',
    ])
    expect(faults({ loopDelayHighMs: 4, loopDelayLowMs: 10_001, memoryHighShare: 1.1, callerShare: 0 })).toHaveLength(4)
  })

  it('knows origins by the spelling browsers have for them', () => {
    const spelled = [
      'HTTPS://App.Example:443/',
      'HTTPS://*.Bücher.example',
      'http://LOCALHOST:*',
      'Capacitor://localhost',
    ]
    const { server } = parseConfig(JSON.stringify({ server: { cors: { allowedOrigins: spelled } } }), {})
    expect(server.cors.allowedOrigins).toEqual([
      'https://app.example',
      'https://*.xn--bcher-kva.example',
      'http://localhost:*',
      'capacitor://localhost',
    ])
  })

  it('lets browsers send credentials only where origins are named', () => {
    const faults = (allowedOrigins: string[]): string[] =>
      faultsOf(json({ server: { cors: { allowedOrigins, allowCredentials: true } } }))
    expect(faults(['https://app.example'])).toEqual([])
    expect(faults(['*'])).toEqual([
      'server.cors.allowCredentials: must be false where server.cors.allowedOrigins holds *',
    ])
  })

  it('brings addresses into one spelling', () => {
    const config = parseConfig(
      '{server: {publicUrl: "HTTPS://X.example:443/base//"}, ssrf: {allow: ["LOCALHOST:080", "[0:0::1]:9"]}}',
      {},
    )
    expect(config.server.publicUrl).toBe('https://x.example/base')
    expect(config.ssrf.allow).toEqual(['localhost:80', '[::1]:9'])
  })

  it('refuses guard exemptions in production only', () => {
    const yaml = '{ssrf: {allow: ["127.0.0.1:9000"]}}'
    expect(faultsOf(yaml, { NODE_ENV: 'production' })).toEqual([
      'ssrf.allow: must be empty when NODE_ENV is production',
    ])
    expect(faultsOf(yaml, { NODE_ENV: 'test' })).toEqual([])
    expect(faultsOf('{ssrf: {allow: []}}', { NODE_ENV: 'production' })).toEqual([])
  })

  it('refuses one port for two listeners, but not two that are off or free', () => {
    expect(faultsOf('{server: {port: 9090}}')).toEqual([
      'server.metricsPort: must differ from server.port (0 switches it off)',
    ])
    expect(faultsOf('{server: {port: 0, metricsPort: 0}}')).toEqual([])
    expect(faultsOf('{server: {port: 9090, host: "a b"}}')).toHaveLength(2)
    expect(faultsOf('{server: {port: 9090, workers: all}}')).toHaveLength(2)
  })
})

describe('Several workers without Redis', () => {
  const DATABASE = { url: 'postgres://db/gateway' }
  const LIMITED = { auth: { defaultLimits: { concurrency: 1 } } }

  const faultsBeside = (document: object, env: Readonly<Record<string, string>> = {}): readonly string[] =>
    faultsOf(JSON.stringify({ database: DATABASE, ...document }), env)

  const FAULT =
    /: server\.workers must be 1, or redis\.url must be set, where auth\.defaultLimits or auth\.keys\[\]\.limits are/

  it.each([
    ['the default has limits', LIMITED],
    [
      'a key has',
      {
        auth: {
          keys: [
            { id: 'free', key: 'a' },
            { id: 'a', key: 'k', limits: { tokensPerMinute: 5 } },
          ],
        },
      },
    ],
  ])('are a fault where %s, which names both settings', (_case, limited) => {
    expect(faultsBeside({ ...limited, server: { workers: 2 } })).toEqual([expect.stringMatching(FAULT)])
    expect(faultsBeside(limited, { WORKERS: '8' })).toEqual([expect.stringMatching(FAULT)])
  })

  it.each<[string, object]>([
    ['one worker', { ...LIMITED, server: { workers: 1 } }],
    ['as many as there are processors, which comes to one then', { ...LIMITED, server: { workers: 'auto' } }],
    ['Redis', { ...LIMITED, server: { workers: 8 }, redis: { url: 'redis://h' } }],
    ['no limits', { server: { workers: 8 }, auth: { keys: [{ id: 'a', key: 'k' }] } }],
    [
      'limits of nothing',
      { server: { workers: 8 }, auth: { keys: [{ id: 'a', key: 'k', limits: {} }], defaultLimits: {} } },
    ],
  ])('are none with %s', (_case, document) => {
    expect(faultsBeside(document)).toEqual([])
  })

  it('are told beside other faults', () => {
    expect(faultsBeside({ ...LIMITED, server: { workers: 2, port: -1 } })).toHaveLength(1)
    expect(
      faultsBeside({ ...LIMITED, server: { workers: 2 }, database: { ...DATABASE, maxConnections: 0 } }),
    ).toHaveLength(2)
  })
})

describe('The section observability', () => {
  const read = (section: object) => parseConfig(JSON.stringify({ observability: section }), {}).observability

  function observabilityFault(section: object): string {
    try {
      read(section)
      return ''
    } catch (error) {
      return error instanceof ConfigError ? error.message : String(error)
    }
  }

  it('takes a collector, its headers, a share of traces and an address for the metrics', () => {
    const section = {
      metricsHost: '127.0.0.1',
      otlpUrl: 'https://collector.example.com/otlp',
      otlpHeaders: { 'x-api-key': 'secret value', Authorization: 'Basic abc=' },
      traceSampleRatio: 0.25,
    }
    expect(read(section)).toEqual(section)
  })

  it.each([0, 1, 0.001, '0.5'])('takes %s for a share', (traceSampleRatio) => {
    expect(read({ traceSampleRatio }).traceSampleRatio).toBe(Number(traceSampleRatio))
  })

  it.each([-0.1, 1.1, 'half', '1e-3', true, [1]])('refuses %p for a share', (traceSampleRatio) => {
    expect(observabilityFault({ traceSampleRatio })).toMatch(
      'observability.traceSampleRatio: must be a number from 0 to 1',
    )
  })

  it.each([
    ['an address that is none', { otlpUrl: 'collector:4318' }, 'observability.otlpUrl'],
    ['an address with a user', { otlpUrl: 'http://u:canary@collector' }, 'observability.otlpUrl'],
    ['an address with a query', { otlpUrl: 'http://collector?canary' }, 'observability.otlpUrl'],
    ['a header with a space in its name', { otlpHeaders: { 'x canary': 'v' } }, 'observability.otlpHeaders'],
    ['a header with a line break', { otlpHeaders: { x: 'a\r\ncanary: b' } }, 'observability.otlpHeaders.x'],
    ['an empty header', { otlpHeaders: { x: '' } }, 'observability.otlpHeaders.x'],
    ['a header that is a number', { otlpHeaders: { x: 1 } }, 'observability.otlpHeaders.x'],
    ['a list of headers', { otlpHeaders: ['canary'] }, 'observability.otlpHeaders'],
    ['a host with a port', { metricsHost: 'host:9090' }, 'observability.metricsHost'],
    ['a key it does not know', { otlpURL: 'http://collector' }, 'observability: unknown key "otlpURL"'],
  ])('refuses %s, by name and never by value', (_what, section, fault) => {
    const text = observabilityFault(section)
    expect(text).toContain(fault)
    expect(text).not.toContain('canary')
  })

  it('takes the collector from the environment', () => {
    const { observability, server } = parseConfig('{}', {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
      METRICS_PORT: '9100',
    })
    expect([observability.otlpUrl, server.metricsPort]).toEqual(['http://collector:4318', 9100])
  })
})

describe('A price', () => {
  function read(value: unknown): unknown {
    return checked(decimal, value, new FaultList())
  }

  it.each([
    ['0', '0'],
    ['2.50', '2.50'],
    ['0.000000000001', '0.000000000001'],
    [0.1, '0.1'],
    [15, '15'],
    [1e-7, '0.0000001'],
    [2.5e-9, '0.0000000025'],
  ])('%j is kept as %j', (given, kept) => {
    expect(read(given)).toBe(kept)
  })

  it.each(['', '-1', '1e3', '.5', '5.', ' 1', '0x1', '1,5', -0.1, Number.NaN, Infinity, 1e21, 1e-13, true, [1], {}])(
    '%j is refused',
    (given) => {
      expect(typeof read(given)).not.toBe('string')
    },
  )

  it('is what was written, for every number of up to twelve digits behind the point', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999 }), fc.integer({ min: 0, max: 999_999_999_999 }), (whole, behind) => {
        const text = `${whole}.${String(behind).padStart(12, '0')}`
        expect(Number(read(Number(text)))).toBe(Number(text))
        expect(String(read(Number(text)))).toBe(text.replace(/\.?0+$/, ''))
      }),
    )
  })
})

const KNOWN = ['id', 'provider', 'baseUrl', 'credentials', 'priority']

describe('the fault for an unknown key', () => {
  it.each([
    ['base_url', 'baseUrl'],
    ['baseURL', 'baseUrl'],
    ['prority', 'priority'],
    ['credential', 'credentials'],
    ['providers', 'provider'],
  ])('suggests the near one for %s', (written, meant) => {
    expect(describeUnknownKey(written, KNOWN)).toBe(`unknown key "${written}"; did you mean "${meant}"?`)
  })

  it('lists what is allowed when nothing is near', () => {
    expect(describeUnknownKey('colour', KNOWN)).toBe(
      'unknown key "colour"; allowed: id, provider, baseUrl, credentials, priority',
    )
    expect(describeUnknownKey('x', [])).toBe('unknown key "x"; none is allowed here')
  })

  it.each(['sk-live-0123456789abcdef', 'a'.repeat(5000), 'line\nbreak', ''])(
    'does not show a key that may be a secret or garble a log: %#',
    (name) => {
      expect(describeUnknownKey(name, ['a'])).toBe('unknown key (not shown, it may be a secret); allowed: a')
    },
  )
})

describe('the number of workers', () => {
  function read(value: unknown): unknown {
    const faults = new FaultList()
    const number = checked(workers, value, faults)
    faults.throwIfAny()
    return number
  }

  it.each([
    [1, 1],
    [128, 128],
    ['4', 4],
    ['auto', 'auto'],
  ])('may be %j', (value, expected) => {
    expect(read(value)).toBe(expected)
  })

  it.each([0, 129, 1.5, -1, 'all', 'AUTO', '', true, [], 'auto '])('is not %j', (value) => {
    expect(() => read(value)).toThrow(ConfigError)
  })
})

describe('Faults by the ten thousand', () => {
  const COUNT = 50_000
  const SCHEMA = strictMap({ list: distinct(strictMap({ id: identifier, to: hostAndPort }), 'id') })

  it.each<[string, (index: number) => object, number]>([
    ['of values', (index) => ({ id: `i${index}`, to: 'wrong' }), COUNT],
    ['of values in maps with unknown keys', (index) => ({ id: `i${index}`, to: 'wrong', more: 1 }), 2 * COUNT],
    ['of values in a list with repetitions', () => ({ id: 'i', to: 'wrong' }), 2 * COUNT - 1],
  ])('%s are put in reading order in a moment', (_what, itemAt, expected) => {
    const document = { list: Array.from({ length: COUNT }, (_, index) => itemAt(index)) }
    const faults = new FaultList()
    const startedAtMs = cpuMs()
    checked(SCHEMA, document, faults)
    expect(cpuMs() - startedAtMs).toBeLessThan(10_000)
    expect(() => {
      faults.throwIfAny()
    }).toThrow(`The configuration has ${expected} faults:`)
  })

  it('begin with what is wrong as a whole, the outer before the inner', () => {
    const document = {
      list: [
        { id: 'a', to: 'wrong', more: 1 },
        { id: 'b', to: 'a:1', more: 1 },
        { id: 'a', to: 'wrong' },
      ],
      other: 1,
    }
    const faults = new FaultList()
    checked(SCHEMA, document, faults)
    expect(() => {
      faults.throwIfAny()
    }).toThrow(
      [
        'The configuration has 6 faults:',
        '  document: unknown key "other"; allowed: list',
        '  list[2].id: is the same as list[0].id',
        '  list[0]: unknown key "more"; allowed: id, to',
        '  list[0].to: must be host:port with a port from 1 to 65535, [host]:port for IPv6',
        '  list[1]: unknown key "more"; allowed: id, to',
        '  list[2].to: must be host:port with a port from 1 to 65535, [host]:port for IPv6',
      ].join('\n'),
    )
  })
})
