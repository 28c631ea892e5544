import { Inject, Injectable } from '@nestjs/common'
import type { UnknownWordKind, UnknownWords } from '../dialects/translator.js'
import type { Logger } from '../observability/logger.js'
import { byLabel, Metrics, registerCounter } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'

/** An upstream could make up any number of them. */
const MAXIMUM_LOGGED_WORDS = 100
const MAXIMUM_WORD_CHARACTERS = 64

const UNPRINTABLE = /[^\x20-\x7e]/g

/** Shows the operator what translations did not understand of upstreams: each word once in the log, all in a metric. */
@Injectable()
export class UnknownUpstreamWords implements UnknownWords {
  private readonly counts: Record<UnknownWordKind, number> = { 'finish reason': 0, 'stop reason': 0, event: 0 }
  private readonly logged = new Set<string>()

  constructor(
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Pick<Logger, 'warn'>,
  ) {
    const help = 'Words of upstreams that translations do not know.'
    registerCounter(metrics, { name: 'gateway_unknown_upstream_words_total', help, labelNames: ['kind'] }, () =>
      byLabel('kind', this.counts),
    )
  }

  note(kind: UnknownWordKind, word: string): void {
    this.counts[kind]++
    const shown = word.slice(0, MAXIMUM_WORD_CHARACTERS).replace(UNPRINTABLE, '?')
    const key = `${kind} ${shown}`
    if (this.logged.size === MAXIMUM_LOGGED_WORDS || this.logged.has(key)) return
    this.logged.add(key)
    this.logger.warn({ kind, word: shown }, 'an upstream said a word that translations do not know')
  }
}
