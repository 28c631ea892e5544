import { languageTag } from '../model/document.js'
import type { FormatSection, FormatToken } from './number-sections.js'

const SECONDS_A_DAY = 86_400
/** Serial number of 1 January 1970, counted from 1 January 1900 as 1, with a 29 February 1900 that did not exist. */
const UNIX_EPOCH_SERIAL = 25_569
/** 31 December 9999. */
const LAST_SERIAL = 2_958_465

/** A day counted by a spreadsheet as the section shows it; undefined where that is no day. */
export function dateText(serial: number, section: FormatSection): string | undefined {
  if (serial < 0 || serial >= LAST_SERIAL + 1) return undefined
  const { tokens } = section
  const decimals = fractionDigits(tokens)
  const unit = 10 ** decimals
  const realSerial = serial < 60 ? serial + 1 : serial
  const ticks = Math.round((realSerial - UNIX_EPOCH_SERIAL) * SECONDS_A_DAY * unit)
  const date = new Date(Math.floor(ticks / unit) * 1000)
  if (section.isOfSystem) return isClock(tokens) ? date.toISOString().slice(11, 19) : date.toISOString().slice(0, 10)
  const elapsed = elapsedParts(Math.round(serial * SECONDS_A_DAY * unit) / unit, tokens)
  const context = {
    date,
    fraction: String(ticks - Math.floor(ticks / unit) * unit).padStart(decimals, '0'),
    hasNoon: tokens.some(({ kind }) => kind === 'noon'),
    language: languageOf(section.language),
  }
  return tokens
    .map((token, index) => {
      if (token.kind === 'elapsed') return elapsed.shift() ?? ''
      if (token.kind === 'digit') return ''
      if (token.kind === 'point')
        return decimals > 0 && tokens[index + 1]?.kind === 'digit' ? `.${context.fraction}` : '.'
      if (token.kind !== 'date' && token.kind !== 'noon') return token.text
      return partText(token, isMinute(tokens, index), context)
    })
    .join('')
}

function fractionDigits(tokens: readonly FormatToken[]): number {
  const point = tokens.findIndex(({ kind }) => kind === 'point')
  if (point === -1) return 0
  const end = tokens.findIndex(({ kind }, index) => index > point && kind !== 'digit')
  return Math.min(3, (end === -1 ? tokens.length : end) - point - 1)
}

function isClock(tokens: readonly FormatToken[]): boolean {
  return tokens.some(({ kind, text }) => kind === 'date' && /^[hs]/i.test(text))
}

/** `m` means minutes behind hours and before seconds. */
function isMinute(tokens: readonly FormatToken[], index: number): boolean {
  const isTime = ({ kind }: FormatToken): boolean => kind === 'date' || kind === 'elapsed'
  const before = tokens.slice(0, index).findLast(isTime)
  const after = tokens.slice(index + 1).find(isTime)
  return /^h/i.test(before?.text ?? '') || /^s/i.test(after?.text ?? '')
}

/** Hours, minutes and seconds that have passed: the first in full, the others as what is left. */
function elapsedParts(seconds: number, tokens: readonly FormatToken[]): string[] {
  return tokens
    .filter(({ kind }) => kind === 'elapsed')
    .map(({ text }) => {
      const unit = text.startsWith('h') ? 3600 : text.startsWith('m') ? 60 : 1
      return String(Math.floor(seconds / unit + 1e-9)).padStart(text.length, '0')
    })
}

interface DateContext {
  readonly date: Date
  readonly fraction: string
  readonly hasNoon: boolean
  readonly language: string
}

function partText({ kind, text }: FormatToken, isMinutes: boolean, context: DateContext): string {
  const { date, hasNoon, language } = context
  const padded = (value: number): string => String(value).padStart(Math.min(text.length, 2), '0')
  const hours = date.getUTCHours()
  if (kind === 'noon') {
    const half = hours < 12 ? 'AM' : 'PM'
    return text.length === 3 ? half.charAt(0) : half
  }
  switch (text.charAt(0).toLowerCase()) {
    case 'y':
      return text.length < 3 ? String(date.getUTCFullYear() % 100).padStart(2, '0') : String(date.getUTCFullYear())
    case 'e':
      return String(date.getUTCFullYear())
    case 'm':
      if (isMinutes && text.length < 3) return padded(date.getUTCMinutes())
      return text.length < 3 ? padded(date.getUTCMonth() + 1) : nameOf(date, 'month', text.length, language)
    case 'd':
      return text.length < 3 ? padded(date.getUTCDate()) : nameOf(date, 'weekday', text.length, language)
    case 'h':
      return padded(hasNoon ? hours % 12 || 12 : hours)
    case 's':
      return padded(date.getUTCSeconds())
    default:
      return ''
  }
}

function nameOf(date: Date, part: 'month' | 'weekday', length: number, language: string): string {
  const style = length === 3 ? 'short' : length === 4 ? 'long' : 'narrow'
  return new Intl.DateTimeFormat(language, { [part]: style, timeZone: 'UTC' }).format(date)
}

/** Languages by the last two digits of their numbers (MS-LCID): the dialect does not change the names. */
const LANGUAGES: ReadonlyMap<string, string> = new Map(
  (
    '04 zh 05 cs 06 da 07 de 08 el 0a es 0b fi 0c fr 0e hu 10 it 11 ja 12 ko 13 nl 14 nb 15 pl 16 pt 18 ro 19 ru 1a hr 1b sk ' +
    '1d sv 1e th 1f tr 22 uk 24 sl 2a vi'
  )
    .match(/\w+ \w+/g)
    ?.map((pair) => [pair.slice(0, 2), pair.slice(3)] as const),
)

function languageOf(declared: string): string {
  const number = /^[0-9a-f]{3,8}$/i.exec(declared)?.[0]
  if (number !== undefined) return LANGUAGES.get(number.slice(-2).toLowerCase()) ?? 'en'
  return languageTag(declared.split(',', 1)[0] ?? '') || 'en'
}
