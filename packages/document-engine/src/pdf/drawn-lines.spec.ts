import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { filledLines, joinedLines, strokedLines } from './drawn-lines.js'
import { type Affine, affineOf, applied, compose, IDENTITY, movedTo } from './geometry.js'
import { moved, placedText, uprightMatrix } from './text-placement.js'

const PAGE = { width: 600, height: 800 }

const number = fc.double({ min: -1000, max: 1000, noNaN: true })
const affine = fc.tuple(number, number, number, number, number, number) as fc.Arbitrary<Affine>

describe('matrices', () => {
  it('compose as their application does', () => {
    fc.assert(
      fc.property(affine, affine, number, number, (outer, inner, x, y) => {
        const [composedX, composedY] = applied(compose(outer, inner), x, y)
        const [nestedX, nestedY] = applied(outer, ...applied(inner, x, y))
        expect(composedX).toBeCloseTo(nestedX, 0)
        expect(composedY).toBeCloseTo(nestedY, 0)
        expect(movedTo(inner, x, y)).toEqual([...inner.slice(0, 4), ...applied(inner, x, y)])
      }),
    )
  })

  it('are six finite numbers or nothing', () => {
    expect(affineOf(new Float32Array([1, 0, 0, 1, 5, 6]))).toEqual([1, 0, 0, 1, 5, 6])
    expect([affineOf([1, 2]), affineOf(null), affineOf([1, 0, 0, 1, NaN, 0])]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })
})

describe('text that runs in any direction', () => {
  it('stays inside the page when the page is turned, and runs to the right', () => {
    fc.assert(
      fc.property(fc.constantFrom(0, 1, 2, 3), fc.nat(600), fc.nat(800), (quarters, x, y) => {
        const angle = (quarters * Math.PI) / 2
        const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
        const item = {
          str: 'text',
          transform: [10 * cos, 10 * sin, -10 * sin, 10 * cos, x, y],
          width: 20,
          height: 10,
          fontName: 'f',
        }
        const text = placedText(item, IDENTITY, false)
        expect(text?.turn).toBe(quarters)
        if (text === undefined) return
        const turned = moved(text, uprightMatrix(text.turn, PAGE.width, PAGE.height))
        const [width, height] = quarters % 2 === 0 ? [600, 800] : [800, 600]
        expect(turned.x).toBeGreaterThanOrEqual(0)
        expect(turned.y).toBeGreaterThanOrEqual(0)
        expect(turned.x).toBeLessThanOrEqual(width)
        expect(turned.y).toBeLessThanOrEqual(height)
      }),
    )
  })
})

describe('lines of paths', () => {
  it('break at curves and end at what is no path', () => {
    const path = [0, 0, 0, 1, 100, 0, 2, 110, 0, 110, 10, 110, 10, 1, 110, 200, 9, 9, 9]
    expect(strokedLines(path, IDENTITY)).toEqual([
      { x1: 0, y1: 0, x2: 100, y2: 0 },
      { x1: 110, y1: 10, x2: 110, y2: 200 },
    ])
    expect(strokedLines('no path', IDENTITY)).toEqual([])
    expect(filledLines([0, NaN, 0, 1, 100, 0, 4], IDENTITY)).toEqual([])
  })

  it('close where the path closes', () => {
    const box = [0, 0, 0, 1, 100, 0, 1, 100, 50, 1, 0, 50, 4]
    expect(strokedLines(box, IDENTITY)).toHaveLength(4)
    expect(filledLines(box, IDENTITY)).toEqual([])
  })

  it('join into lines that cover no less than their parts and are no more', () => {
    const part = fc.record({ level: fc.nat(5), start: fc.nat(500), length: fc.integer({ min: 3, max: 80 }) })
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
        const lines = parts.map(({ level, start, length }) => ({
          x1: start,
          y1: level * 20,
          x2: start + length,
          y2: level * 20,
        }))
        const joined = joinedLines(lines, PAGE)
        expect(joined.length).toBeLessThanOrEqual(lines.length)
        for (const line of lines) {
          expect(joined.some((rule) => rule.y1 === line.y1 && rule.x1 <= line.x1 && rule.x2 >= line.x2)).toBe(true)
        }
      }),
    )
  })
})
