import type { ConfigSource, ConfigStore, ReloadOutcome } from './config-store.js'

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

/** Says in the log what became of a reload; never a value. */
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
