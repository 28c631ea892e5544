import { describe, expect, it } from '@jest/globals'
import { onePage } from '../../../../test/support/pdf-files.js'
import { texText } from './tex-characters.js'

describe('the text of a bitmap font of TeX', () => {
  it.each([
    ['e\u001Ecient \u001Cnal di\u000Eculty', 'efficient final difficulty'],
    ['\u0010Quoted\u0011 \u0015 1990\u00152000', '“Quoted” – 1990–2000'],
    ['\u0088 item', '• item'],
    ['\u0088', '•'],
    ['\u008Aód\u00B9, Stra\u00FFe, \u00F7uvre', 'Łód¹, Straße, œuvre'],
    ['plain', 'plain'],
  ])('%j is read as %j', (raw, text) => {
    expect(texText(raw)).toBe(text)
  })

  it('is told by the names of the glyphs', async () => {
    const glyph = '<< /Length 22 >>'
    const font = (name: string) =>
      `<< /Type /Font /Subtype /Type3 /FontBBox [0 0 10 10] /FontMatrix [0.1 0 0 0.1 0 0] /FirstChar 28 /LastChar 28 /Widths [5] /CharProcs << /${name} 100 0 R >> /Encoding << /Type /Encoding /Differences [28 /${name}] >> /Resources << >> >>`
    const objects = new Map([[100, { text: glyph.replace(' /Length 22', ''), stream: '5 0 0 0 5 5 d1 0 0 5 5 re f' }]])
    const page = await onePage(
      { content: 'BT /F3 12 Tf 100 700 Td <1c1c> Tj ET' },
      { resources: `/Font << /F3 ${font('a28')} >>`, objects },
    )
    expect(page.runs.map(({ text }) => text)).toEqual(['fifi'])
  })
})
