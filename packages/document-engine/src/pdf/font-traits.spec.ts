import { describe, expect, it } from '@jest/globals'
import { ObservedFont } from './fonts.js'

const named = (name: string) => new ObservedFont({ name, id: 'font 1', claimsFixedPitch: false })

function withWidths(widths: Record<string, number>, claimsFixedPitch = false): ObservedFont {
  const font = new ObservedFont({ name: '', id: 'font 1', claimsFixedPitch })
  for (const [glyph, width] of Object.entries(widths)) font.observe(glyph, width)
  return font
}

describe('ObservedFont', () => {
  it.each([
    ['ABCDEF+Arial-BoldMT', true, false],
    ['TimesNewRomanPS-BoldItalicMT', true, true],
    ['NimbusRomNo9L-Medi', true, false],
    ['NimbusRomNo9L-MediItal', true, true],
    ['NimbusRomNo9L-ReguItal', false, true],
    ['QWERTZ+CMBX12', true, false],
    ['CMTI10', false, true],
    ['SFBX1000', true, false],
    ['SourceSansPro-Semibold', true, false],
    ['FrutigerLTStd-Black', true, false],
    ['MinionPro-It', false, true],
    ['Roboto-Medium', false, false],
    ['CMR10', false, false],
    ['CMMI10', false, false],
    ['Italica', false, true],
    ['BlackletterITC-Regular', false, false],
  ])('knows the weight and slope of %s', (name, isBold, isItalic) => {
    expect(named(name).traits).toMatchObject({ isBold, isItalic })
  })

  it('takes the mark of the subset off its name, and its number where it has no name', () => {
    expect(named('ABCDEF+Arial').traits.name).toBe('Arial')
    expect(named('').traits.name).toBe('font 1')
  })

  it('is of fixed pitch when letters of different shape are equally wide', () => {
    expect(withWidths({ i: 600, l: 600, m: 600, W: 600 }).isFixedPitch).toBe(true)
    expect(withWidths({ a: 556, b: 556, d: 556, e: 556, n: 556 }).isFixedPitch).toBe(false)
  })

  it('is not of fixed pitch when letters differ, whatever its file claims', () => {
    expect(withWidths({ i: 222, l: 222, m: 833, w: 722 }, true).isFixedPitch).toBe(false)
  })

  it('goes by name and claim when it has hardly any letters, but not for CJK or symbols', () => {
    expect(withWidths({ a: 500, b: 500 }, true).isFixedPitch).toBe(true)
    expect(withWidths({ '∗': 500 }, true).isFixedPitch).toBe(false)
    expect(withWidths({ a: 500, 中: 1000, 文: 1000 }, true).isFixedPitch).toBe(false)
    expect(named('CourierNewPSMT').isFixedPitch).toBe(true)
    expect(named('CMTT10').isFixedPitch).toBe(true)
  })

  it('changes its mind when later pages show more', () => {
    const font = withWidths({ a: 500 }, true)
    expect(font.isFixedPitch).toBe(true)
    for (const [letter, width] of [
      ['i', 250],
      ['m', 800],
      ['n', 500],
    ] as const)
      font.observe(letter, width)
    expect(font.isFixedPitch).toBe(false)
  })
})
