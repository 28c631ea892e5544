import { isDeepStrictEqual } from 'node:util'
import { type DynamicModule, Module } from '@nestjs/common'
import { ConfigModule } from '@nestjs/config'
import { countApart, ISSUED_PREFIX, LIMITS_NEED_REDIS } from './auth-schema.js'
import { environmentConfig, sandboxEnvironmentConfig } from './environment.js'
import { ConfigError, deepFreeze } from './faults.js'
import type { GatewayConfig } from './settings.js'

const FIXED_SECTIONS = ['database', 'redis', 'observability'] as const

/** Settings that take effect only at start, such as ports and pools: `current` keeps their running values. */
function keepFixedSettings(loaded: GatewayConfig, running: GatewayConfig) {
  const needsRestart = [
    ...(['host', 'port', 'metricsPort', 'workers'] as const)
      .filter((setting) => loaded.server[setting] !== running.server[setting])
      .map((setting) => `server.${setting}`),
    ...FIXED_SECTIONS.filter((section) => !isDeepStrictEqual(loaded[section], running[section])),
  ]
  if (needsRestart.length === 0) return { next: loaded, needsRestart }
  const { host, port, metricsPort, workers } = running.server
  const server = { ...loaded.server, host, port, metricsPort, workers }
  const { database, redis, observability } = running
  return { next: deepFreeze({ ...loaded, server, database, redis, observability }), needsRestart }
}

/** A configuration that is valid. */
export interface ValidConfig {
  readonly config: GatewayConfig
  /** Changed settings that keep their running values, as found by the process that read the configuration. */
  readonly needsRestart?: readonly string[]
}

/** Reads the configuration anew; undefined when its file is gone. Throws `ConfigError` on a fault, or `ConfigRefused`. */
export type ConfigSource = () => Promise<ValidConfig | undefined>

/** Another process has read and refused the configuration; the faults are complete sentences. */
export class ConfigRefused extends Error {
  override readonly name = 'ConfigRefused'

  constructor(readonly faults: readonly string[]) {
    super('The configuration was refused.')
  }
}

export type ConfigListener = (next: GatewayConfig, previous: GatewayConfig) => void

export type ReloadOutcome =
  | {
      readonly applied: true
      /** Settings that changed in the file but keep their running values until the process starts again. */
      readonly needsRestart: readonly string[]
      /** What listeners threw; the new configuration is in force all the same. */
      readonly listenerErrors: readonly unknown[]
    }
  | {
      readonly applied: false
      /** One text per fault, by path and name, never by value. */
      readonly faults: readonly string[]
    }

/** Outcome of reloads, for metrics. */
export interface ReloadCounts {
  readonly applied: number
  readonly refused: number
  /** When the configuration in force was read, in Unix milliseconds. */
  readonly lastAppliedAtMs: number
}

/** The configuration in force. A request takes `current` once and finishes on what it took. */
export class ConfigStore {
  #current: GatewayConfig
  #lastReload: Promise<unknown> = Promise.resolve()
  #reloads: ReloadCounts = { applied: 0, refused: 0, lastAppliedAtMs: Date.now() }
  readonly #listeners = new Set<ConfigListener>()

  constructor(
    initial: GatewayConfig,
    private readonly source?: ConfigSource,
  ) {
    this.#current = initial
  }

  get current(): GatewayConfig {
    return this.#current
  }

  get reloads(): ReloadCounts {
    return this.#reloads
  }

  /** Calls `listener` after every swap, in order of registration; returns the way to stop it. */
  onChange(listener: ConfigListener): () => void {
    const registered: ConfigListener = (next, previous) => {
      listener(next, previous)
    }
    this.#listeners.add(registered)
    return () => {
      this.#listeners.delete(registered)
    }
  }

  /**
   * Validates, then swaps at once; keeps the old configuration on any fault. One reload after the other; never rejects.
   * Reads from its own source unless there is another one for this time.
   */
  reload(source = this.source): Promise<ReloadOutcome> {
    const outcome = this.#lastReload.then(async () => this.#counted(await this.#reloadFrom(source)))
    this.#lastReload = outcome
    return outcome
  }

  #counted(outcome: ReloadOutcome): ReloadOutcome {
    const { applied, refused } = this.#reloads
    this.#reloads = outcome.applied
      ? { applied: applied + 1, refused, lastAppliedAtMs: Date.now() }
      : { ...this.#reloads, refused: refused + 1 }
    return outcome
  }

  async #reloadFrom(source: ConfigSource | undefined): Promise<ReloadOutcome> {
    if (source === undefined) return refused('there is no configuration file to reload')
    try {
      const loaded = await source()
      if (loaded === undefined) return refused('the configuration file does not exist any more')
      return this.#swap(loaded)
    } catch (error) {
      if (error instanceof ConfigRefused) return refused(...error.faults)
      if (error instanceof ConfigError)
        return refused(...error.faults.map(({ path, message }) => `${path}: ${message}`))
      // The error's own text may quote the file.
      return refused('the configuration could not be read')
    }
  }

  #swap({ config, needsRestart: kept = [] }: ValidConfig): ReloadOutcome {
    const previous = this.#current
    const { next, needsRestart } = keepFixedSettings(config, previous)
    // The file may name a Redis, or one worker: neither is there before a restart.
    if (countApart(next))
      return refused(
        `server.workers: ${next.server.workers} workers run, without Redis, until a restart; ${LIMITS_NEED_REDIS}`,
      )
    this.#current = next
    const listenerErrors: unknown[] = []
    for (const listener of [...this.#listeners]) {
      try {
        listener(next, previous)
      } catch (error) {
        listenerErrors.push(error)
      }
    }
    return { applied: true, needsRestart: [...kept, ...needsRestart], listenerErrors }
  }
}

function refused(...faults: string[]): ReloadOutcome {
  return { applied: false, faults }
}

export interface ReloadLog {
  info(message: string): void
  error(message: string): void
}

/** Reloads the configuration, from the store's own source unless another is named, and logs the outcome; never rejects. */
export async function reloadConfig(
  store: Pick<ConfigStore, 'reload'>,
  log: ReloadLog,
  source?: ConfigSource,
): Promise<void> {
  reportReload(await store.reload(source), log)
}

/** Logs the outcome of a reload; never a value. */
export function reportReload(outcome: ReloadOutcome, log: ReloadLog): void {
  if (!outcome.applied) {
    log.error(`configuration not reloaded, the old one stays in force: ${outcome.faults.join('; ')}`)
    return
  }
  log.info('configuration reloaded')
  if (outcome.needsRestart.length > 0) log.info(`changed, but needs a restart: ${outcome.needsRestart.join(', ')}`)
  for (const error of outcome.listenerErrors) {
    // The error's own text may quote a setting.
    const name = error instanceof Error ? error.name : 'unknown error'
    log.error(`configuration reloaded, but a part did not take it over: ${name}`)
  }
}

/** Warnings about allowed but probably unintended settings, for the log; never a value. */
export function configWarnings(config: GatewayConfig): string[] {
  const warnings: string[] = []
  if (config.callbacks.secret === undefined) warnings.push('callbacks.secret is not set: callbacks are sent unsigned')
  if (config.channels.length === 0) warnings.push('channels is empty: nothing but documents can be served')
  const hasOwnRows = config.models.some(({ providers }) => providers.includes('p2'))
  config.channels.forEach(({ provider, models }, index) => {
    if (provider !== 'p2' || models !== undefined || hasOwnRows) return
    warnings.push(
      `channels[${index}].models is not set: the catalogue has no models for p2, so the channel serves none`,
    )
  })
  const passesCallers = config.channels.some(({ credentials }) => credentials.kind === 'caller')
  const readsKeys = config.auth.adminKey !== undefined || config.database.url !== undefined
  if (config.auth.keys.length === 0 && !passesCallers && !readsKeys)
    warnings.push('auth.keys is empty: every request is refused')
  const { mistakableKeys } = config.auth
  if (mistakableKeys !== undefined)
    warnings.push(
      `auth.keys: ${shown(mistakableKeys)} may be passed on to an upstream, by credentials: caller, where a gateway does ` +
        `not know them yet or any more; only keys that begin with ${ISSUED_PREFIX} never are`,
    )
  if (config.auth.adminKey?.isJudged === false)
    warnings.push('auth.adminKey is given as a hash: nobody has judged how easily the key is guessed')
  return warnings
}

const MAXIMUM_SHOWN = 10

function shown(ids: readonly string[]): string {
  const rest = ids.length - MAXIMUM_SHOWN
  return ids.slice(0, MAXIMUM_SHOWN).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

export interface ConfigurationOptions {
  /** The configuration at start. */
  readonly config: GatewayConfig
  /** Where a reload reads; absent in sandbox mode, where a reload is refused. */
  readonly reloadFrom?: ConfigSource
  /** Absent = false. The sandbox has a data directory of its own. */
  readonly sandbox?: boolean
}

/** Gives `ConfigStore` and the environment (`environmentConfig.KEY`) to every module. */
@Module({})
export class ConfigurationModule {
  static forRoot({ config, reloadFrom, sandbox = false }: ConfigurationOptions): DynamicModule {
    return {
      module: this,
      global: true,
      imports: [ConfigModule.forFeature(sandbox ? sandboxEnvironmentConfig : environmentConfig)],
      providers: [{ provide: ConfigStore, useFactory: () => new ConfigStore(config, reloadFrom) }],
      exports: [ConfigStore, ConfigModule],
    }
  }
}

/**
 * Turns a configuration received from another process, plain objects, into what `parseConfig` returns: it is
 * frozen, and maps have no prototype, so that a name such as `constructor` finds nothing. Returns the same value.
 */
export function handedOver<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (!Array.isArray(value)) Object.setPrototypeOf(value, null)
  for (const item of Object.values(value)) handedOver(item)
  return Object.freeze(value)
}
