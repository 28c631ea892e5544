import type { UsageRecord } from '../../src/core/usage-record.js'

/** A row of the price table as it stands in the file. */
export type PriceTableRow = Readonly<Record<string, unknown>> & {
  readonly models: readonly string[]
  readonly channels?: readonly string[]
}

/** Behind the point: enough for any price per million. */
const PLACES = 24
const ONE = 10n ** BigInt(PLACES)
const TWELFTH = 10n ** BigInt(PLACES - 12)

/** Exactly, in 10^-24. */
function parts(value: unknown): bigint {
  const [whole = '', behind = ''] = String(value).split('.')
  return BigInt(whole) * ONE + BigInt(behind.padEnd(PLACES, '0').slice(0, PLACES))
}

const fits = (pattern: string, model: string): boolean =>
  new RegExp(`^${pattern.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`).test(model)

/**
 * What a record must cost by the table, in 10^-24 of its currency, by whole numbers alone and from the rules as they are
 * documented: each part of a whole at its own price or, without one, at that of the whole.
 */
export function expectedCost({ model, channelId, kind, units }: UsageRecord, table: readonly PriceTableRow[]): bigint {
  const row = table.find(
    (each) =>
      each.models.some((pattern) => fits(pattern, model ?? '')) &&
      (each.channels?.includes(channelId ?? '') ?? true) &&
      (each['kind'] === 'input_transcription') === (kind === 'input_transcription'),
  )
  const perMillion = (quantity: number, ...names: readonly string[]): bigint => {
    const name = names.find((each) => row?.[each] !== undefined)
    if (quantity > 0 && name === undefined) throw new Error(`${String(model)} has no price of ${names.join()}`)
    return (BigInt(quantity) * parts(row?.[name ?? ''] ?? 0)) / 1_000_000n
  }
  const { promptTokens = 0, cachedTokens = 0, cacheWriteTokens = 0, audioInputTokens = 0 } = units
  const { completionTokens = 0, audioOutputTokens = 0, reasoningTokens = 0, characters = 0, videos = 0 } = units
  return (
    perMillion(promptTokens - cachedTokens - cacheWriteTokens - audioInputTokens, 'promptTokens') +
    perMillion(cachedTokens, 'cachedTokens', 'promptTokens') +
    perMillion(cacheWriteTokens, 'cacheWriteTokens', 'promptTokens') +
    perMillion(audioInputTokens, 'audioInputTokens', 'promptTokens') +
    perMillion(completionTokens - audioOutputTokens - reasoningTokens, 'completionTokens') +
    perMillion(audioOutputTokens, 'audioOutputTokens', 'completionTokens') +
    perMillion(reasoningTokens, 'reasoningTokens', 'completionTokens') +
    perMillion(characters, 'characters') +
    BigInt(videos) * parts(row?.['videos'] ?? 0) +
    timeCost(units.audioSeconds ?? 0, row)
  )
}

/** A price per minute is rounded at the twelfth digit; half to even. */
function timeCost(seconds: number, row: PriceTableRow | undefined): bigint {
  if (seconds === 0) return 0n
  const perSecond = row?.['audioSeconds']
  if (perSecond !== undefined) return (parts(seconds) * parts(perSecond)) / ONE
  const dividend = (parts(seconds) * parts(row?.['audioMinutes'] ?? 0)) / ONE
  const [quotient, rest] = [dividend / (60n * TWELFTH), dividend % (60n * TWELFTH)]
  const half = 30n * TWELFTH
  const isUp = rest > half || (rest === half && quotient % 2n === 1n)
  return (quotient + (isUp ? 1n : 0n)) * TWELFTH
}

/** The cost that stands in a record, in the same measure. */
export const recordedCost = ({ cost }: UsageRecord): bigint => parts(cost)
