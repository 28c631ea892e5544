import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../../../test/support/cpu-time.js'
import { builtInKind, kindOfFormat, numberText } from './xlsx-number-format.js'

describe('a number format', () => {
  it.each([
    ['General', 'number'],
    ['0.00', 'number'],
    ['#,##0.00 "m/d/y"', 'number'],
    ['[Red]0;[Blue]-0', 'number'],
    ['#,##0\\ [$€-407]', 'number'],
    ['0.00E+00', 'number'],
    ['0%', 'percent'],
    ['0.0\\ %', 'percent'],
    ['yyyy-mm-dd', 'date'],
    ['[$-409]d\\-mmm\\-yy;@', 'date'],
    ['mmm', 'date'],
    ['dd.mm.yyyy hh:mm', 'date-time'],
    ['h:mm AM/PM', 'time'],
    ['mm:ss.0', 'time'],
    ['[h]:mm:ss', 'duration'],
    ['[mm]:ss', 'duration'],
  ])('%s is that of a %s', (code, kind) => {
    expect(kindOfFormat(code)).toBe(kind)
  })

  it.each(['[', '"', '\\', '[h', '[[h]'])('of nothing but %j is told at once, however long it is', (piece) => {
    const startedAtMs = cpuMs()
    expect(kindOfFormat(piece.repeat(50_000))).toBeDefined()
    expect(cpuMs() - startedAtMs).toBeLessThan(100)
  })

  it('has the kind that its first 255 characters say, which is all that Excel takes', () => {
    expect(kindOfFormat(`${'0'.repeat(254)}%`)).toBe('percent')
    expect(kindOfFormat(`${'0'.repeat(255)}%`)).toBe('number')
  })

  it.each([
    [0, 'number'],
    [9, 'percent'],
    [14, 'date'],
    [20, 'time'],
    [22, 'date-time'],
    [46, 'duration'],
    [49, 'number'],
    [57, 'date'],
    [NaN, 'number'],
  ])('of number %d is that of a %s', (id, kind) => {
    expect(builtInKind(id)).toBe(kind)
  })
})

describe('a number', () => {
  it.each([
    ['45413', 'date', '2024-05-01'],
    ['45413.5625', 'date-time', '2024-05-01 13:30'],
    ['45413.562511574', 'date-time', '2024-05-01 13:30:01'],
    ['0.75', 'time', '18:00'],
    ['1', 'date', '1900-01-01'],
    ['59', 'date', '1900-02-28'],
    ['61', 'date', '1900-03-01'],
    ['2958465', 'date', '9999-12-31'],
    ['-1', 'date', '-1'],
    ['99999999', 'date', '99999999'],
    ['1.5', 'duration', '36:00:00'],
    ['-0.5', 'duration', '-12:00:00'],
    ['0.125', 'percent', '12.5%'],
    ['0.07', 'percent', '7%'],
    ['0.30000000000000004', 'number', '0.3'],
    ['1.5E-3', 'number', '0.0015'],
    ['12345678901234567890', 'number', '12345678901234567890'],
    ['-7', 'number', '-7'],
    ['n/a', 'date', 'n/a'],
    ['', 'number', ''],
    ['Infinity', 'date', 'Infinity'],
  ] as const)('%s as a %s is %s', (raw, kind, text) => {
    expect(numberText(raw, kind, false)).toBe(text)
  })

  it('counts from 1904 where the workbook does', () => {
    expect(numberText('43951', 'date', true)).toBe('2024-05-01')
    expect(numberText('0.5', 'time', true)).toBe('12:00')
  })
})
