import Big from 'big.js'

/** Sums and products are exact. The one division is that of a price per minute: twelve digits, half to even. */
export const Decimal = Big()
Decimal.DP = 12
Decimal.RM = 2

/** The price of one unit, and the same in whole parts of a row's smallest: NaN where that is no safe number. */
export interface UnitPrice {
  readonly exact: Big
  readonly parts: number
}

/** Digits after the point. */
export const digitsOf = ({ c: digits, e: exponent }: Big): number => Math.max(0, digits.length - 1 - exponent)

/** `scale` is the number of digits that all prices of a row fit into. */
export function unitPrice(exact: Big, scale: number): UnitPrice {
  const parts = Number(exact.times(new Decimal(10).pow(scale)).toFixed())
  return { exact, parts: Number.isSafeInteger(parts) ? parts : Number.NaN }
}

/**
 * What quantities cost, added up exactly: in whole numbers as long as these are safe, which is nearly always and a tenth of
 * the work, otherwise in decimals.
 */
export class Bill {
  private parts = 0
  private rest: Big | undefined
  private isComplete = true

  constructor(
    private readonly scale: number,
    /** Of something that is paid and includes what has no price of its own. */
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

/** Without zeros at its end. */
function decimalText(parts: number, scale: number): string {
  if (parts === 0) return '0'
  const digits = String(parts).padStart(scale + 1, '0')
  const point = digits.length - scale
  let end = digits.length
  while (end > point && digits[end - 1] === '0') end--
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`
}
