import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { PROVIDER_NAMES } from './channel-config.js'
import { readEnvironment } from './environment.js'
import { handedOver } from './handed-over.js'
import { parseConfig } from './load-config.js'
import type { Schema } from './schema-schema.js'
import { configSchema } from './schema.js'

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
  DATABASE_URL: 'postgres://user:pass#word@db/gateway',
  REDIS_URL: 'redis://cache:6379',
  PORT: '8081',
  HOST: '127.0.0.1',
  LOG_LEVEL: 'warn',
  WORKERS: 'auto',
  DRAIN_DELAY_MS: '5000',
  METRICS_PORT: '9091',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
}

interface Setting {
  readonly path: string
  /** Raw default; absent for required and optional settings. */
  readonly fallback?: unknown
  readonly found: readonly unknown[]
}

/** Every setting of the schema with the values the example gives it, wherever in a list they stand. */
function settingsOf(schema: Schema<unknown>, path: string, found: readonly unknown[]): Setting[] {
  const { fields = {}, item, variants } = schema
  const below = Object.entries(fields).flatMap(([name, field]) => {
    const values = found.flatMap((map) => (isRecord(map) && name in map ? [map[name]] : []))
    const setting = { path: `${path}${name}`, found: values, ...('fallback' in field && { fallback: field.fallback }) }
    if (field.schema.variants === undefined) return [setting, ...settingsOf(field.schema, `${setting.path}.`, values)]
    return [setting, ...Object.values(field.schema.variants).flatMap((v) => settingsOf(v, `${setting.path}.`, values))]
  })
  const items = item === undefined ? [] : settingsOf(item, `${path}[].`, found.flat())
  return variants === undefined ? [...below, ...items] : below
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

describe('gateway.example.yaml', () => {
  const settings = settingsOf(configSchema, '', [parse(switchedOn)])

  it('is walked down to the options of a channel', () => {
    const paths = settings.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining(['server.port', 'auth.keys.[].models', 'channels.[].options.unknownTasks', 'redis.url']),
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

  it('has a channel for every provider', () => {
    const { channels } = parseConfig(example, { ...filledIn })
    expect(channels.map(({ provider }) => provider)).toEqual([...PROVIDER_NAMES])
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
