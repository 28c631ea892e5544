import type { FormatToken } from './number-sections.js'

/** The 15 digits that a spreadsheet computes with. */
export function generalText(value: number): string {
  return String(Number(value.toPrecision(15)))
}

/** A number without its sign in the places of digits of a format. */
export function digitsText(value: number, tokens: readonly FormatToken[]): string {
  const exponent = tokens.findIndex(({ kind }) => kind === 'exponent')
  if (exponent !== -1) return scientificText(value, tokens, exponent)
  const slash = tokens.findIndex(({ kind }, index) => kind === 'slash' && tokens[index - 1]?.kind === 'digit')
  if (slash !== -1) return fractionText(value, tokens, slash)
  const percents = tokens.filter(({ kind }) => kind === 'percent').length
  return placesText(value * 100 ** percents, tokens)
}

function placesText(value: number, tokens: readonly FormatToken[]): string {
  const lastDigit = tokens.findLastIndex(({ kind }) => kind === 'digit')
  const point = tokens.findIndex(({ kind }) => kind === 'point')
  const end = point === -1 ? lastDigit : Math.min(point, lastDigit)
  // Commas behind the last place divide by a thousand each, one between places groups them.
  const scale = tokens.filter(({ kind }, index) => kind === 'comma' && index > end && isBehind(tokens, index)).length
  const isGrouped = tokens.some(({ kind }, index) => kind === 'comma' && index < end)
  const decimals = point === -1 ? [] : tokens.slice(point + 1).filter(({ kind }) => kind === 'digit')
  const [whole = '', fraction = ''] = fixed(value / 1000 ** scale, decimals.length).split('.')
  const wholeTokens = point === -1 ? tokens : tokens.slice(0, point)
  const tail = point === -1 ? '' : fractionPlaces(fraction, tokens.slice(point + 1))
  return wholePlaces(whole, wholeTokens, isGrouped) + tail
}

/** Whether only commas stand between a place and the last digit before it. */
function isBehind(tokens: readonly FormatToken[], index: number): boolean {
  let before = index - 1
  while (tokens[before]?.kind === 'comma') before -= 1
  return tokens[before]?.kind === 'digit'
}

/** Digits from the right to the left, so that texts between the places keep their own; the first place has the rest. */
function wholePlaces(digits: string, tokens: readonly FormatToken[], isGrouped: boolean): string {
  let left = digits === '0' ? '' : digits
  const first = tokens.findIndex(({ kind }) => kind === 'digit')
  const parts: string[] = []
  let written = 0
  const put = (digit: string): void => {
    if (isGrouped && written > 0 && written % 3 === 0) parts.push(',')
    parts.push(digit)
    written += 1
  }
  for (let index = tokens.length - 1; index >= 0; index -= 1) {
    const { kind, text } = tokens[index] ?? { kind: 'literal', text: '' }
    if (kind === 'digit') {
      if (left !== '') put(left.slice(-1))
      else if (text === '0') put('0')
      left = left.slice(0, -1)
      if (index !== first) continue
      for (; left !== ''; left = left.slice(0, -1)) put(left.slice(-1))
    } else if (kind === 'literal' || kind === 'percent' || kind === 'slash') parts.push(text)
  }
  return parts.reverse().join('')
}

/** Decimals; zeros at the end are kept where the place is `0`. */
function fractionPlaces(digits: string, tokens: readonly FormatToken[]): string {
  const places = tokens.filter(({ kind }) => kind === 'digit')
  let length = places.length
  while (length > 0 && places[length - 1]?.text !== '0' && digits[length - 1] === '0') length -= 1
  let text = length > 0 ? '.' : ''
  let place = 0
  for (const token of tokens) {
    if (token.kind === 'digit') {
      if (place < length) text += digits[place] ?? ''
      place += 1
    } else if (token.kind === 'literal' || token.kind === 'percent') text += token.text
  }
  return text
}

/** Rounds half away from zero by the decimal digits, as spreadsheets do. */
function fixed(value: number, decimals: number): string {
  const [mantissa = '0', exponent = '0'] = generalText(value).split('e')
  const shifted = Math.round(Number(`${mantissa}e${Number(exponent) + decimals}`))
  if (!Number.isSafeInteger(shifted)) return largeText(mantissa, Number(exponent), value, decimals)
  const digits = String(shifted).padStart(decimals + 1, '0')
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

/** Digits of a number beyond 2^53; zeros from the 16th on. */
function largeText(mantissa: string, exponent: number, value: number, decimals: number): string {
  if (exponent === 0) return value.toFixed(Math.min(decimals, 100))
  const whole = mantissa.replace('.', '').padEnd(exponent + 1, '0')
  return decimals === 0 ? whole : `${whole}.${'0'.repeat(decimals)}`
}

/** `0.00E+00`; with several places before the point the exponent is a multiple of their number. */
function scientificText(value: number, tokens: readonly FormatToken[], at: number): string {
  const mantissa = tokens.slice(0, at)
  const point = mantissa.findIndex(({ kind }) => kind === 'point')
  const places = (point === -1 ? mantissa : mantissa.slice(0, point)).filter(({ kind }) => kind === 'digit').length
  const decimals = mantissa.filter(({ kind }) => kind === 'digit').length - places
  const step = Math.max(1, places)
  const exponentFor = (number: number): number =>
    number === 0 ? 0 : Math.floor(Math.floor(Math.log10(number) + 1e-12) / step) * step
  let exponent = exponentFor(value)
  // Rounding may carry into another digit: 9.99 is 1.0E+1.
  exponent = exponentFor(Number(fixed(value / 10 ** exponent, decimals)) * 10 ** exponent)
  const sign = exponent < 0 ? '-' : tokens[at]?.text.endsWith('+') === true ? '+' : ''
  const rest = tokens.slice(at + 1)
  const digits = rest.filter(({ kind }) => kind === 'digit').length
  const literals = rest.filter(({ kind }) => kind === 'literal').map(({ text }) => text)
  const power = String(Math.abs(exponent)).padStart(digits, '0')
  return `${placesText(value / 10 ** exponent, mantissa)}E${sign}${power}${literals.join('')}`
}

/** `# ?/?`: a whole number and the nearest fraction with so many digits, or with the denominator of the format. */
function fractionText(value: number, tokens: readonly FormatToken[], slash: number): string {
  let start = slash
  while (tokens[start - 1]?.kind === 'digit') start -= 1
  let end = slash + 1
  let written = ''
  while (tokens[end]?.kind === 'digit' || /^\d$/.test(tokens[end]?.text ?? '')) {
    written += tokens[end]?.text ?? ''
    end += 1
  }
  const before = tokens.slice(0, start)
  const isMixed = before.some(({ kind }) => kind === 'digit')
  const whole = isMixed ? Math.floor(value) : 0
  const named = /^[1-9]\d{0,3}$/.test(written) ? Number(written) : undefined
  const [over, under] = nearest(value - whole, named ?? 0, 10 ** Math.min(written.length, 3) - 1)
  const total = over === under && isMixed ? whole + 1 : whole
  const hasFraction = over !== 0 && !(over === under && isMixed)
  const literals = tokens.slice(end).filter(({ kind }) => kind === 'literal')
  const parts = [
    total !== 0 || !hasFraction
      ? wholePlaces(String(total), isMixed && !hasFraction ? zeroed(before) : before, false).trim()
      : '',
    hasFraction ? `${over}/${under}` : isMixed ? '' : '0',
  ]
  return parts.filter((part) => part !== '').join(' ') + literals.map(({ text }) => text).join('')
}

/** A number without a fraction shows its zero. */
function zeroed(tokens: readonly FormatToken[]): FormatToken[] {
  const last = tokens.findLastIndex(({ kind }) => kind === 'digit')
  return tokens.map((token, index) => (index === last ? { ...token, text: '0' } : token))
}

/** The nearest fraction with the denominator, or, if that is 0, with the smallest one up to `most`. */
function nearest(value: number, denominator: number, most: number): [over: number, under: number] {
  if (denominator > 0) return [Math.round(value * denominator), denominator]
  let best: [number, number] = [Math.round(value), 1]
  for (let under = 1; under <= most; under += 1) {
    const over = Math.round(value * under)
    if (Math.abs(over / under - value) < Math.abs(best[0] / best[1] - value) - 1e-12) best = [over, under]
  }
  return best
}
