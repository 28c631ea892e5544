import { ConfigRefused, type ConfigSource, type ValidConfig } from '../config/config-store.js'
import { handedOver } from '../config/handed-over.js'
import type { ReloadVerdict } from './worker-messages.js'

/** The configuration as a worker hears of it: the primary alone reads and judges it. */
export class HandedConfig {
  private newest: ValidConfig
  private onAnswer: ((verdict: ReloadVerdict) => void) | undefined

  constructor(
    first: ValidConfig,
    private readonly ask: () => void,
  ) {
    this.newest = first
  }

  /** Has the primary read it again, for all of its workers; one at a time. */
  readonly readAgain: ConfigSource = async () => {
    const answer = new Promise<ReloadVerdict>((resolve) => {
      this.onAnswer = resolve
    })
    this.ask()
    return this.judged(await answer)
  }

  /** What became of what `readAgain` had asked for. */
  answer(verdict: ReloadVerdict): void {
    this.keep(verdict)
    this.onAnswer?.(verdict)
  }

  /** What became of a reload that nobody here had asked for, to reload from. */
  hear(verdict: ReloadVerdict): ConfigSource {
    this.keep(verdict)
    return () => this.judged(verdict)
  }

  private keep(verdict: ReloadVerdict): void {
    if ('config' in verdict) this.newest = handedOver(verdict)
  }

  /** A reload may have to wait for another one whose answer comes later and is newer: none takes the older one back. */
  private judged(verdict: ReloadVerdict): Promise<ValidConfig> {
    return 'faults' in verdict ? Promise.reject(new ConfigRefused(verdict.faults)) : Promise.resolve(this.newest)
  }
}
