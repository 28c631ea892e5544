import { describe, expect, it } from '@jest/globals'
import { loadPdfjs } from './pdfjs.js'
import { IDENTITY } from './geometry.js'
import { describedPictures, isPictured, notablePictures, PictureTrace } from './pictures.js'

const PAGE = { width: 600, height: 800 }
const box = (x1: number, y1: number, x2: number, y2: number) => ({ x1, y1, x2, y2 })

describe('the pictures of a page', () => {
  it('are notable when they are larger than an icon and smaller than the page, strips of one taken together', () => {
    const strips = [box(50, 100, 250, 110), box(50, 110, 250, 120), box(50, 121, 250, 200)]
    const pictures = [box(0, 0, 600, 800), ...strips, box(300, 300, 320, 320), box(700, 100, 900, 300)]
    expect(notablePictures(pictures, PAGE)).toEqual([box(50, 100, 250, 200)])
  })

  it('cover the page from a half of it on', () => {
    expect(isPictured([box(0, 0, 600, 390)], PAGE)).toBe(false)
    expect(isPictured([box(0, 0, 600, 200), box(0, 200, 600, 410)], PAGE)).toBe(true)
  })

  it('are described where a tag says what they show', () => {
    const figure = { role: 'Figure', alt: 'A kettle', children: [] }
    const plain = { ...figure, alt: ' ' }
    expect(describedPictures({ role: 'P', alt: '', children: [figure, 'a', plain, figure] })).toBe(2)
    expect(describedPictures(undefined)).toBe(0)
  })

  it('are bounded in number', async () => {
    const { OPS } = await loadPdfjs()
    const trace = new PictureTrace(OPS, () => [100, 0, 0, 100, ...IDENTITY.slice(4)] as unknown as typeof IDENTITY)
    for (let count = 0; count < 10_000; count += 1) {
      for (const operator of [OPS.save, OPS.transform, OPS.restore]) trace.step(operator, [])
    }
    expect(trace.pictures).toHaveLength(5000)
  })
})
