const MILLISECONDS_A_DAY = 86_400_000
/** Serial number of 1 January 1970, counted from 1 January 1900 as 1, with a 29 February 1900 that did not exist. */
const UNIX_EPOCH_SERIAL = 25_569
const DAYS_FROM_1900_TO_1904 = 1462
/** 31 December 9999. */
const LAST_SERIAL = 2_958_465

export type NumberKind = 'number' | 'percent' | 'date' | 'time' | 'date-time' | 'duration'

/** ECMA-376 part 1, 18.8.30: built-in formats, which have an id and no code; East Asian ones included. */
const BUILT_IN_KINDS: readonly (readonly [first: number, last: number, kind: NumberKind])[] = [
  [9, 10, 'percent'],
  [14, 17, 'date'],
  [18, 21, 'time'],
  [22, 22, 'date-time'],
  [27, 31, 'date'],
  [32, 35, 'time'],
  [36, 36, 'date'],
  [45, 45, 'time'],
  [46, 46, 'duration'],
  [47, 47, 'time'],
  [50, 54, 'date'],
  [55, 56, 'time'],
  [57, 58, 'date'],
]

export function builtInKind(formatId: number): NumberKind {
  return BUILT_IN_KINDS.find(([first, last]) => formatId >= first && formatId <= last)?.[2] ?? 'number'
}

/** Longest format that Excel accepts; hostile files have longer ones. */
const LONGEST_CODE = 255

/** Kind of a number format such as `yyyy\-mm\-dd;@` or `0.0%`. */
export function kindOfFormat(code: string): NumberKind {
  const bare = code.slice(0, LONGEST_CODE).replaceAll(/"[^"]*"|\\.|_.|\*./g, '')
  const section = bare.split(';', 1)[0] ?? ''
  if (/\[(?:h+|m+|s+)\]/i.test(section)) return 'duration'
  const letters = section.replaceAll(/\[[^[\]]*\]|general/gi, '')
  if (letters.includes('%')) return 'percent'
  const hasTime = /[hs]/i.test(letters)
  const hasDate = /[yd]/i.test(letters) || (!hasTime && /m/i.test(letters))
  if (hasDate) return hasTime ? 'date-time' : 'date'
  return hasTime ? 'time' : 'number'
}

/**
 * A number cell as text: dates and times by ISO 8601, percentages as such, everything else with the 15 digits that a
 * spreadsheet computes with, whatever the sheet rounds or decorates.
 *
 * @param raw the number as written in the file
 * @param startsIn1904 the workbook counts its days from 1904
 */
export function numberText(raw: string, kind: NumberKind, startsIn1904: boolean): string {
  const value = Number(raw)
  if (raw.trim() === '' || !Number.isFinite(value)) return raw
  if (kind === 'number') return /^-?\d+$/.test(raw) ? raw : exactText(value)
  if (kind === 'percent') return `${exactText(value * 100)}%`
  if (kind === 'duration') return durationText(value)
  const serial = startsIn1904 && kind !== 'time' ? value + DAYS_FROM_1900_TO_1904 : value
  if (serial < 0 || serial > LAST_SERIAL) return exactText(value)
  return momentText(serial, kind)
}

function exactText(value: number): string {
  return String(Number(value.toPrecision(15)))
}

function momentText(serial: number, kind: NumberKind): string {
  const realSerial = serial < 60 ? serial + 1 : serial
  const seconds = Math.round(((realSerial - UNIX_EPOCH_SERIAL) * MILLISECONDS_A_DAY) / 1000)
  const [date = '', clock = ''] = new Date(seconds * 1000).toISOString().split('T')
  const time = clock.startsWith(':00', 5) ? clock.slice(0, 5) : clock.slice(0, 8)
  if (kind === 'date') return date
  return kind === 'time' ? time : `${date} ${time}`
}

function durationText(days: number): string {
  const seconds = Math.round(Math.abs(days) * 86_400)
  const twoDigits = (value: number): string => String(value).padStart(2, '0')
  const minutes = Math.floor(seconds / 60)
  const sign = days < 0 ? '-' : ''
  return `${sign}${Math.floor(minutes / 60)}:${twoDigits(minutes % 60)}:${twoDigits(seconds % 60)}`
}
