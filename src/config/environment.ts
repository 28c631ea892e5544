import { join } from 'node:path'
import { registerAs } from '@nestjs/config'
import { readVariable, type Reading, type Variables } from './variable.js'

/** The variables that win over the file, and the setting each of them stands for. */
export const ENVIRONMENT_OVERRIDES = [
  { variable: 'PORT', section: 'server', setting: 'port' },
  { variable: 'HOST', section: 'server', setting: 'host' },
  { variable: 'DATABASE_URL', section: 'database', setting: 'url' },
  { variable: 'REDIS_URL', section: 'redis', setting: 'url' },
  { variable: 'LOG_LEVEL', section: 'logging', setting: 'level' },
  { variable: 'WORKERS', section: 'server', setting: 'workers' },
  { variable: 'DRAIN_DELAY_MS', section: 'timeouts', setting: 'drainDelayMs' },
  { variable: 'METRICS_PORT', section: 'server', setting: 'metricsPort' },
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
  /** What wins over the file, not checked yet; the checked values are in `GatewayConfig`. */
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

/** What the same key gives in the sandbox. */
export const sandboxEnvironmentConfig = registerAs('environment', (): Environment =>
  readEnvironment(processEnvironment(), true),
)
