import Big from 'big.js'
import type { PriceRow } from '../config/settings.js'
import { globMatcher } from '../core/caller.js'
import type { UsageKind } from '../core/endpoint.js'
import type { CountedUnits } from '../core/usage-record.js'

/** Sums and products are exact. The one division is that of a price per minute: twelve digits, half to even. */
export const Decimal = Big()
Decimal.DP = 12
Decimal.RM = 2

/** The price of one unit, exact and as a whole multiple of a row's smallest part: NaN where that is not a safe integer. */
interface UnitPrice {
  readonly exact: Big
  readonly parts: number
}

/** Digits after the point. */
const digitsOf = ({ c: digits, e: exponent }: Big): number => Math.max(0, digits.length - 1 - exponent)

/** `scale` is the number of digits that all prices of a row fit into. */
export function unitPrice(exact: Big, scale: number): UnitPrice {
  const parts = Number(exact.times(new Decimal(10).pow(scale)).toFixed())
  return { exact, parts: Number.isSafeInteger(parts) ? parts : Number.NaN }
}

/**
 * The cost of quantities, added up exactly: in integers as long as these are safe, which is nearly always and takes a
 * tenth of the time, otherwise in decimals.
 */
export class Bill {
  private parts = 0
  private rest: Big | undefined
  private isComplete = true

  constructor(
    private readonly scale: number,
    /** The cost of a paid unit that includes others without a price of their own. */
    private readonly includesOthers: boolean,
  ) {}

  add(quantity: number, price: UnitPrice | undefined): void {
    if (quantity <= 0) return
    if (price === undefined) {
      if (!this.includesOthers) this.isComplete = false
      return
    }
    // A rounded product, or sum, is never below the largest safe number.
    const sum = this.parts + quantity * price.parts
    if (sum <= Number.MAX_SAFE_INTEGER && Number.isInteger(quantity)) this.parts = sum
    else this.addCost(price.exact.times(quantity))
  }

  addCost(cost: Big): void {
    this.rest = this.rest === undefined ? cost : this.rest.plus(cost)
  }

  /** Exact decimal text; undefined when something on it has no price. */
  get text(): string | undefined {
    if (!this.isComplete) return undefined
    const text = decimalText(this.parts, this.scale)
    return this.rest === undefined ? text : this.rest.plus(text).toFixed()
  }
}

/** Without trailing zeros. */
function decimalText(parts: number, scale: number): string {
  if (parts === 0) return '0'
  const digits = String(parts).padStart(scale + 1, '0')
  const point = digits.length - scale
  let end = digits.length
  while (end > point && digits[end - 1] === '0') end--
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`
}

const MILLIONTH = Decimal('0.000001')
const SECONDS_PER_MINUTE = 60
const FREE = unitPrice(Decimal(0), 0)

/** One row of the price table, per single unit. */
export class Price {
  private readonly unit: Readonly<Partial<Record<keyof PriceRow, UnitPrice>>>
  private readonly minute: Big | undefined
  private readonly scale: number

  constructor(row: PriceRow) {
    const prices = {
      ...priced(row, PER_MILLION, (price) => price.times(MILLIONTH)),
      ...priced(row, EACH, (price) => price),
    }
    const scale = Math.max(0, ...Object.values(prices).map(digitsOf))
    this.unit = Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, unitPrice(price, scale)]))
    this.minute = row.audioMinutes === undefined ? undefined : Decimal(row.audioMinutes)
    this.scale = scale
  }

  /** Cost of so many requests and their units: exact decimal text. undefined when one of them has no price. */
  costOf(units: CountedUnits, requests: number): string | undefined {
    const { requests: request, characters, videos, images } = this.unit
    const bill = new Bill(this.scale, request !== undefined)
    if (request !== undefined) bill.add(requests, request)
    if (units.promptTokens !== undefined) this.addPrompt(units, bill)
    if (units.completionTokens !== undefined) this.addCompletion(units, bill)
    if (units.characters !== undefined) bill.add(units.characters, characters)
    if (units.audioSeconds !== undefined) this.addTime(units.audioSeconds, bill)
    if (units.videos !== undefined) bill.add(units.videos, videos)
    if (units.images !== undefined) bill.add(units.images, images)
    if (units.documents !== undefined || units.pages !== undefined) this.addDocuments(units, bill)
    return bill.text
  }

  /**
   * Each token is charged once: tokens with a price of their own are subtracted from the total, whatever the upstream's
   * figures are.
   */
  private addPrompt(units: CountedUnits, bill: Bill): void {
    const { promptTokens, cachedTokens, cacheWriteTokens, audioInputTokens } = this.unit
    const { cachedAudioTokens = cachedTokens ?? audioInputTokens ?? promptTokens } = this.unit
    const { cacheWriteHourTokens = cacheWriteTokens ?? promptTokens } = this.unit
    const { cachedTokens: cached = 0, audioInputTokens: audio = 0, cacheWriteTokens: written = 0 } = units
    const left = new Share(units.promptTokens ?? 0)
    const cachedAudio = left.take(Math.min(units.cachedAudioTokens ?? 0, cached, audio))
    const hour = left.take(Math.min(units.cacheWriteHourTokens ?? 0, written))
    bill.add(cachedAudio, cachedAudioTokens)
    bill.add(hour, cacheWriteHourTokens)
    bill.add(left.take(cached - cachedAudio), cachedTokens ?? promptTokens)
    bill.add(left.take(written - hour), cacheWriteTokens ?? promptTokens)
    bill.add(left.take(audio - cachedAudio), audioInputTokens ?? promptTokens)
    bill.add(left.rest, promptTokens)
  }

  private addCompletion(units: CountedUnits, bill: Bill): void {
    const { completionTokens, audioOutputTokens, reasoningTokens } = this.unit
    const left = new Share(units.completionTokens ?? 0)
    bill.add(left.take(units.audioOutputTokens ?? 0), audioOutputTokens ?? completionTokens)
    bill.add(left.take(units.reasoningTokens ?? 0), reasoningTokens ?? completionTokens)
    bill.add(left.rest, completionTokens)
  }

  private addTime(seconds: number, bill: Bill): void {
    if (this.minute === undefined) bill.add(seconds, this.unit.audioSeconds)
    else bill.addCost(this.minute.times(seconds).div(SECONDS_PER_MINUTE))
  }

  /** Two measures of one thing: one price is enough, and a row with both charges both. */
  private addDocuments({ documents = 0, pages = 0 }: CountedUnits, bill: Bill): void {
    const { documents: perDocument, pages: perPage } = this.unit
    const other = perDocument === undefined && perPage === undefined ? undefined : FREE
    bill.add(documents, perDocument ?? other)
    bill.add(pages, perPage ?? other)
  }
}

/** The remainder of a total while parts are subtracted; never negative. */
class Share {
  constructor(public rest: number) {}

  take(part: number): number {
    const taken = Math.min(Math.max(part, 0), this.rest)
    this.rest -= taken
    return taken
  }
}

const PER_MILLION = [
  'promptTokens',
  'cachedTokens',
  'cachedAudioTokens',
  'cacheWriteTokens',
  'cacheWriteHourTokens',
  'audioInputTokens',
  'completionTokens',
  'audioOutputTokens',
  'reasoningTokens',
  'characters',
] as const
const EACH = ['audioSeconds', 'videos', 'images', 'documents', 'pages', 'requests'] as const

function priced<Name extends (typeof PER_MILLION)[number] | (typeof EACH)[number]>(
  row: PriceRow,
  names: readonly Name[],
  perUnit: (price: Big) => Big,
): Partial<Record<Name, Big>> {
  const prices: Partial<Record<Name, Big>> = {}
  for (const name of names) {
    const text = row[name]
    if (text !== undefined) prices[name] = perUnit(Decimal(text))
  }
  return prices
}

/** Limit of cached names, as callers may invent them; beyond it the rows are searched again. */
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
