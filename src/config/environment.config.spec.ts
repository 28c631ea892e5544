import { describe, expect, it } from '@jest/globals'
import { environmentConfig, readEnvironment, sandboxEnvironmentConfig } from './environment.js'

describe('readEnvironment', () => {
  it('gives the defaults when nothing is set', () => {
    expect(readEnvironment({})).toEqual({
      configFile: './gateway.yaml',
      configFileNamed: false,
      dataDirectory: './data',
      production: false,
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
    expect(readEnvironment(variables, true)).toEqual({ ...readEnvironment(variables), dataDirectory: own })
  })

  it('is what Nest injects for the process', () => {
    expect(environmentConfig()).toEqual(readEnvironment(process.env))
    expect(sandboxEnvironmentConfig()).toEqual(readEnvironment(process.env, true))
    expect(sandboxEnvironmentConfig.KEY).toBe(environmentConfig.KEY)
  })
})
