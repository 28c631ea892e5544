import { ConfigError } from './config-fault.js'
import { keepFixedSettings } from './fixed-settings.js'
import { countApart, LIMITS_NEED_REDIS } from './limits-schema.js'
import type { GatewayConfig } from './settings.js'

/** A configuration that is valid. */
export interface ValidConfig {
  readonly config: GatewayConfig
  /** What has changed but was left as it runs by whoever has judged it already. */
  readonly needsRestart?: readonly string[]
}

/** Reads the configuration anew; undefined when its file is gone. Throws `ConfigError` on a fault, or `ConfigRefused`. */
export type ConfigSource = () => Promise<ValidConfig | undefined>

/** Somebody else has read the configuration and judged it; the faults are whole sentences already. */
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

/** How reloads went, for those who watch over the process. */
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
