import type { PriceRow } from '../config/settings.js'
import { globMatcher } from '../core/model-access.js'
import type { UsageKind } from '../core/usage-record.js'
import { Price } from './prices.js'

/** Names that callers invent must not fill the memory; the rows are searched again then. */
const REMEMBERED = 10_000

interface PricedModels {
  readonly matches: (model: string) => boolean
  readonly channels: ReadonlySet<string> | undefined
  readonly isForTranscriptions: boolean
  readonly price: Price
}

/** The price table of one configuration. */
export class PriceTable {
  private readonly rows: readonly PricedModels[]
  private readonly found = new Map<string, Price | undefined>()

  constructor(rows: readonly PriceRow[]) {
    this.rows = rows.map((row) => ({
      matches: globMatcher(row.models),
      channels: row.channels && new Set(row.channels),
      isForTranscriptions: row.kind === 'input_transcription',
      price: new Price(row),
    }))
  }

  get isEmpty(): boolean {
    return this.rows.length === 0
  }

  /** The first row that fits. */
  find(model: string, channelId: string, kind: UsageKind): Price | undefined {
    const isTranscription = kind === 'input_transcription'
    const key = `${isTranscription ? 'heard' : ''}\n${channelId}\n${model}`
    const known = this.found.get(key)
    if (known !== undefined || this.found.has(key)) return known
    const price = this.rows.find(
      ({ matches, channels, isForTranscriptions }) =>
        isForTranscriptions === isTranscription && (channels?.has(channelId) ?? true) && matches(model),
    )?.price
    if (this.found.size >= REMEMBERED) this.found.clear()
    this.found.set(key, price)
    return price
  }
}
