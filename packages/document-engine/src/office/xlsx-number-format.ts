import { dateText } from './number-dates.js'
import { digitsText, generalText } from './number-digits.js'
import { type FormatSection, formatSections } from './number-sections.js'

const DAYS_FROM_1900_TO_1904 = 1462

/** Accounting formats leave room for brackets. */
const NEGATIVE_IN_BRACKETS = (positive: string): string => `${positive}_);(${positive})`

/**
 * ECMA-376 part 1, 18.8.30: formats that have an id and no code, East Asian ones included. Where the format is that of the
 * reader's country, dates follow ISO 8601.
 */
const BUILT_IN_CODES: readonly (readonly [first: number, last: number, code: string])[] = [
  [1, 1, '0'],
  [2, 2, '0.00'],
  [3, 3, '#,##0'],
  [4, 4, '#,##0.00'],
  [5, 6, NEGATIVE_IN_BRACKETS('$#,##0')],
  [7, 8, NEGATIVE_IN_BRACKETS('$#,##0.00')],
  [9, 9, '0%'],
  [10, 10, '0.00%'],
  [11, 11, '0.00E+00'],
  [12, 12, '# ?/?'],
  [13, 13, '# ??/??'],
  [14, 14, 'yyyy-mm-dd'],
  [15, 15, 'd-mmm-yy'],
  [16, 16, 'd-mmm'],
  [17, 17, 'mmm-yy'],
  [18, 18, 'h:mm AM/PM'],
  [19, 19, 'h:mm:ss AM/PM'],
  [20, 20, 'h:mm'],
  [21, 21, 'h:mm:ss'],
  [22, 22, 'yyyy-mm-dd hh:mm'],
  [27, 31, 'yyyy-mm-dd'],
  [32, 32, 'h:mm'],
  [33, 33, 'h:mm:ss'],
  [34, 34, 'h:mm'],
  [35, 35, 'h:mm:ss'],
  [36, 36, 'yyyy-mm-dd'],
  [37, 38, NEGATIVE_IN_BRACKETS('#,##0')],
  [39, 40, NEGATIVE_IN_BRACKETS('#,##0.00')],
  [41, 41, NEGATIVE_IN_BRACKETS('#,##0')],
  [42, 42, NEGATIVE_IN_BRACKETS('$#,##0')],
  [43, 43, NEGATIVE_IN_BRACKETS('#,##0.00')],
  [44, 44, NEGATIVE_IN_BRACKETS('$#,##0.00')],
  [45, 45, 'mm:ss'],
  [46, 46, '[h]:mm:ss'],
  [47, 47, 'mm:ss.0'],
  [48, 48, '##0.0E+0'],
  [50, 54, 'yyyy-mm-dd'],
  [55, 56, 'h:mm'],
  [57, 58, 'yyyy-mm-dd'],
]

/** Code of a built-in format. */
export function builtInCode(formatId: number): string {
  return BUILT_IN_CODES.find(([first, last]) => formatId >= first && formatId <= last)?.[2] ?? 'General'
}

interface Section extends FormatSection {
  readonly isDate: boolean
  readonly isGeneral: boolean
  readonly hasDigits: boolean
}

/** A number format of spreadsheets, such as `#,##0.00;[Red]-#,##0.00` or `yyyy\-mm\-dd`. */
export class NumberFormat {
  private readonly sections: readonly Section[]
  private readonly hasConditions: boolean

  constructor(code: string) {
    this.sections = formatSections(code).map((section) => ({
      ...section,
      isDate: section.tokens.some(({ kind }) => kind === 'date' || kind === 'elapsed'),
      isGeneral: section.tokens.some(({ kind }) => kind === 'general' || kind === 'text'),
      hasDigits: section.tokens.some(({ kind }) => kind === 'digit'),
    }))
    this.hasConditions = this.sections.some(({ condition }) => condition !== undefined)
  }

  /**
   * A number cell as the spreadsheet shows it; without a format, with 15 digits.
   *
   * @param raw the number as written in the file
   * @param startsIn1904 the workbook counts its days from 1904
   */
  text(raw: string, startsIn1904: boolean): string {
    const value = Number(raw)
    if (raw.trim() === '' || !Number.isFinite(value)) return raw
    const section = this.sectionFor(value)
    if (section === undefined || section.tokens.length === 0) {
      return this.sections.length > 1 && section !== undefined ? '' : plainText(raw, value)
    }
    if (section.isDate) return momentText(value, section, startsIn1904)
    if (section.isGeneral) return withGeneral(section, plainText(raw, value))
    if (!section.hasDigits) return section.tokens.map(({ text }) => text).join('')
    const isSigned = value < 0 && (this.sections.length === 1 || section !== this.sections[1] || this.hasConditions)
    const text = digitsText(Math.abs(value), section.tokens)
    return isSigned && /[1-9]/.test(text) ? `-${text}` : text
  }

  /** Sections are for positive and negative numbers and zero, unless they have conditions. */
  private sectionFor(value: number): Section | undefined {
    const [first, second, third] = this.sections
    if (this.hasConditions) {
      const met = this.sections.slice(0, 2).find(({ condition }) => condition?.(value) === true)
      return met ?? this.sections.slice(0, 3).findLast(({ condition }) => condition === undefined) ?? first
    }
    if (value < 0) return second ?? first
    return value === 0 ? (third ?? first) : first
  }
}

function plainText(raw: string, value: number): string {
  return /^-?\d+$/.test(raw) ? raw : generalText(value)
}

function withGeneral({ tokens }: Section, text: string): string {
  return tokens.map((token) => (token.kind === 'general' || token.kind === 'text' ? text : token.text)).join('')
}

function momentText(value: number, section: Section, startsIn1904: boolean): string {
  const isElapsed = section.tokens.some(({ kind }) => kind === 'elapsed')
  if (isElapsed && value < 0) return `-${dateText(-value, section) ?? ''}`
  const hasDay = section.tokens.some(({ kind, text }) => kind === 'date' && /^[yde]/i.test(text))
  const serial = startsIn1904 && (hasDay || section.isOfSystem) ? value + DAYS_FROM_1900_TO_1904 : value
  return dateText(serial, section) ?? generalText(value)
}
