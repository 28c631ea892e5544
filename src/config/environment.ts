import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { registerAs } from '@nestjs/config'
import { isMap } from './faults.js'

/** Environment variables as Node gives them: text or nothing. */
export type Variables = Readonly<Record<string, string | undefined>>

/** Value or problem of a variable; neither if it is not set. */
interface Reading {
  readonly value?: string
  /** What is wrong, by the names of variables; never a path or a value. */
  readonly problem?: string
}

/** Limit of a secret file. */
const MAXIMUM_BYTES = 65_536

/**
 * The value of the variable `name`, or the content of the file that the variable `<name>_FILE` names, without the line end
 * that editors add: the usual way to pass secrets to containers. An empty variable counts as not set. Never throws.
 */
export function readVariable(env: Variables, name: string): Reading {
  const value = valueOf(env, name)
  const file = valueOf(env, `${name}_FILE`)
  if (file === undefined) return value === undefined ? {} : { value }
  if (value !== undefined) return { problem: `${name} and ${name}_FILE are both set; leave one of them out` }
  return readSecret(file, `the file that ${name}_FILE names`)
}

function valueOf(env: Variables, name: string): string | undefined {
  const value = env[name]
  return value === '' ? undefined : value
}

function readSecret(path: string, what: string): Reading {
  try {
    const bytes = readAtMost(path, MAXIMUM_BYTES + 1)
    if (bytes.length > MAXIMUM_BYTES) return { problem: `${what} is larger than ${MAXIMUM_BYTES} bytes` }
    const value = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
    return value === '' ? { problem: `${what} is empty` } : { value }
  } catch (error) {
    return { problem: `${what} ${complaint(error)}` }
  }
}

/** Stops at `limit` bytes, as a device may never end. */
function readAtMost(path: string, limit: number): Buffer {
  const descriptor = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(limit)
    let length = 0
    for (;;) {
      const read = readSync(descriptor, buffer, length, limit - length, null)
      length += read
      if (read === 0 || length === limit) return buffer.subarray(0, length)
    }
  } finally {
    closeSync(descriptor)
  }
}

function complaint(error: unknown): string {
  const code = isMap(error) && typeof error['code'] === 'string' ? error['code'] : 'unknown'
  if (code === 'ENOENT') return 'does not exist'
  return code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'must be UTF-8 text' : `cannot be read (${code})`
}

/** Variables that override the file, and their settings. */
export const ENVIRONMENT_OVERRIDES = [
  { variable: 'PORT', section: 'server', setting: 'port' },
  { variable: 'HOST', section: 'server', setting: 'host' },
  { variable: 'DATABASE_URL', section: 'database', setting: 'url' },
  { variable: 'REDIS_URL', section: 'redis', setting: 'url' },
  { variable: 'LOG_LEVEL', section: 'logging', setting: 'level' },
  { variable: 'WORKERS', section: 'server', setting: 'workers' },
  { variable: 'DRAIN_DELAY_MS', section: 'timeouts', setting: 'drainDelayMs' },
  { variable: 'METRICS_PORT', section: 'server', setting: 'metricsPort' },
  { variable: 'METRICS_HOST', section: 'observability', setting: 'metricsHost' },
  { variable: 'DOCS', section: 'server', setting: 'docs' },
  { variable: 'TRANSLATE', section: 'dialects', setting: 'translate' },
  { variable: 'FETCH_DOCUMENTS', section: 'documents', setting: 'fetch' },
  { variable: 'OTEL_EXPORTER_OTLP_ENDPOINT', section: 'observability', setting: 'otlpUrl' },
] as const

/** Has a value or a problem. */
export type EnvironmentOverride = (typeof ENVIRONMENT_OVERRIDES)[number] & Reading

export interface Environment {
  /** GATEWAY_CONFIG, a path; default `./gateway.yaml`. */
  readonly configFile: string
  /** True when GATEWAY_CONFIG named the file: then its absence is a fault in production. */
  readonly configFileNamed: boolean
  /**
   * GATEWAY_DATA, the folder of the embedded store, and of usage that could not be stored; default `./data`. In the
   * sandbox a folder of its own in there.
   */
  readonly dataDirectory: string
  /** True when NODE_ENV is `production`. */
  readonly production: boolean
  /**
   * True when GATEWAY_CONTAINER is `true`, as in the image: what a machine hears from itself alone by default has to listen on all
   * addresses there, because its ports are published one by one.
   */
  readonly inContainer: boolean
  /** True for the gateway that runs without a file, on simulators. */
  readonly inSandbox: boolean
  /** Overrides of the file, unchecked; the checked values are in `GatewayConfig`. */
  readonly overrides: readonly EnvironmentOverride[]
}

/** Reads the gateway's own variables. An empty variable counts as not set. Never fails. */
export function readEnvironment(env: Variables, inSandbox = false): Environment {
  const configFile = plainValue(env, 'GATEWAY_CONFIG')
  return {
    configFile: configFile ?? './gateway.yaml',
    configFileNamed: configFile !== undefined,
    dataDirectory: dataDirectoryOf(plainValue(env, 'GATEWAY_DATA') ?? './data', inSandbox),
    production: plainValue(env, 'NODE_ENV') === 'production',
    inContainer: plainValue(env, 'GATEWAY_CONTAINER') === 'true',
    inSandbox,
    overrides: ENVIRONMENT_OVERRIDES.flatMap((override) => {
      const reading = readVariable(env, override.variable)
      return reading.value === undefined && reading.problem === undefined ? [] : [{ ...override, ...reading }]
    }),
  }
}

/**
 * A gateway that is configured in the same place later must not take up the tasks and the usage of the sandbox as its
 * own: no upstream has ever seen them.
 */
const dataDirectoryOf = (named: string, inSandbox: boolean): string => (inSandbox ? join(named, 'sandbox') : named)

/** Of a variable that holds no secret. */
const plainValue = (env: Variables, name: string): string | undefined => (env[name] === '' ? undefined : env[name])

/** The process's own variables, for `main`: nothing outside this folder touches `process.env`. */
export function processEnvironment(): NodeJS.ProcessEnv {
  return process.env
}

/** Injectable in Nest code as `@Inject(environmentConfig.KEY) environment: Environment`. */
export const environmentConfig = registerAs('environment', (): Environment => readEnvironment(processEnvironment()))

/** The environment of the sandbox, under the same injection key. */
export const sandboxEnvironmentConfig = registerAs('environment', (): Environment =>
  readEnvironment(processEnvironment(), true),
)
