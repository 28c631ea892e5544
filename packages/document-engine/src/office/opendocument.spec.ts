import { describe, expect, it } from '@jest/globals'
import { type Parts, zipOf } from '../../../../test/support/office-files.js'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { readOdp, readOds, readOdt } from './opendocument.js'

const LIMITS = { pages: 500, decodedBytes: 5_000_000 }
const inputOf = (bytes: Uint8Array): Parameters<typeof readOdt>[0] => ({
  bytes,
  contentType: '',
  name: '',
  baseUrl: '',
})

const STYLES =
  '<style:style style:name="B" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>' +
  '<style:style style:name="I" style:family="text"><style:text-properties fo:font-style="italic"/></style:style>' +
  '<style:style style:name="C" style:family="text"><style:text-properties style:font-name="Courier New"/></style:style>' +
  '<style:style style:name="U" style:family="text"><style:text-properties style:text-position="super 58%"/></style:style>' +
  '<style:style style:name="Code" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>' +
  '<style:style style:name="H" style:family="table"><style:table-properties table:display="false"/></style:style>' +
  '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" text:start-value="3"/>' +
  '<text:list-level-style-bullet text:level="2"/></text:list-style>'

function odf(body: string, more: Parts = {}): Uint8Array {
  return zipOf({
    mimetype: 'application/vnd.oasis.opendocument.text',
    'content.xml': `<office:document-content><office:automatic-styles>${STYLES}</office:automatic-styles><office:body>${body}</office:body></office:document-content>`,
    ...more,
  })
}
const odt = (text: string, more: Parts = {}): EngineOutput =>
  readOdt(inputOf(odf(`<office:text>${text}</office:text>`, more)), LIMITS)
const p = (text: string): string => `<text:p>${text}</text:p>`

describe('an OpenDocument text', () => {
  it('has headings, emphasis, links, blanks and code', () => {
    const text =
      '<text:p text:style-name="Title">Tea</text:p><text:h text:outline-level="2">Cups</text:h>' +
      p(
        '<text:span text:style-name="B">bold</text:span><text:s text:c="2"/><text:span text:style-name="I">italic</text:span><text:tab/><text:a xlink:href="https://example.org/">link</text:a> <text:span text:style-name="C">run()</text:span> m<text:span text:style-name="U">2</text:span>',
      ) +
      '<text:p text:style-name="Code">if x:</text:p><text:p text:style-name="Code"><text:s text:c="2"/>y &lt; 1</text:p>' +
      '<text:p text:style-name="Quotations">said</text:p>'
    expect(odt(text).markdown).toBe(
      '# Tea\n\n## Cups\n\n**bold** *italic* [link](https://example.org/) `run()` m²\n\n```\nif x:\n  y < 1\n```\n\n> said\n',
    )
  })

  it('has code by its font', () => {
    const typed = (text: string): string => `<text:span text:style-name="C">${text}</text:span>`
    const lines = p(`${typed('if')} ${typed('x:')}<text:line-break/>${typed('<text:s text:c="2"/>y')}`) + p(typed('z'))
    expect(odt(lines + p('end')).markdown).toBe('```\nif x:\n  y\nz\n```\n\nend\n')
  })

  it('has lists by their styles, and tables', () => {
    const list = `<text:list text:style-name="L"><text:list-item>${p('three')}<text:list><text:list-item>${p('inner')}</text:list-item></text:list></text:list-item><text:list-item>${p('☒ four')}</text:list-item></text:list>`
    const cell = (text: string, more = ''): string => `<table:table-cell ${more}>${text && p(text)}</table:table-cell>`
    const table = `<table:table><table:table-column/><table:table-row>${cell('a')}${cell('b')}</table:table-row><table:table-row>${cell('wide', 'table:number-columns-spanned="2"')}<table:covered-table-cell/></table:table-row></table:table>`
    expect(odt(list + table).markdown).toBe(
      '3. three\n   - inner\n4. [x] four\n\n| a | b |\n| --- | --- |\n| wide | |\n',
    )
  })

  it('has notes, comments, boxes, pictures and equations, and nothing that was deleted', () => {
    const note = `<text:note><text:note-citation>1</text:note-citation><text:note-body>${p('A note.')}${p('More.')}</text:note-body></text:note>`
    const comment = `<office:annotation><dc:creator>Ann</dc:creator><dc:date>2024</dc:date>${p('Why?')}</office:annotation>`
    const frame = (content: string): string => `<draw:frame>${content}</draw:frame>`
    const text =
      `<text:tracked-changes><text:changed-region>${p('gone')}</text:changed-region></text:tracked-changes>` +
      p(`One${note} two${comment}`) +
      frame(`<draw:text-box>${p('in a box')}</draw:text-box>`) +
      p(frame('<draw:image/><svg:desc>A cup</svg:desc>') + frame('<draw:image/>')) +
      p(`so ${frame('<draw:object xlink:href="./Object 1/"/>')}`) +
      p(frame('<draw:object xlink:href="./Object 2"/>'))
    const { markdown, metadata } = odt(text, {
      'Object 1/content.xml':
        '<math:math><math:mfrac><math:mi>a</math:mi><math:mi>b</math:mi></math:mfrac></math:math>',
      'Object 2/content.xml': '<office:document-content/>',
    })
    expect(markdown).toBe(
      'One[^1] two[^2]\n\nin a box\n\nA cup\n\nso $\\frac{a}{b}$\n\n[^1]: A note. More.\n\n[^2]: **Ann:** Why?\n',
    )
    expect(metadata.warnings.map(({ code }) => code)).toEqual(['pictures_dropped', 'attachments_unread'])
  })

  it('has its metadata, and the language of its styles', () => {
    const styles =
      '<office:document-styles><office:styles><style:default-style style:family="paragraph"><style:text-properties fo:language="de" fo:country="AT"/></style:default-style></office:styles></office:document-styles>'
    const meta =
      '<office:document-meta><office:meta><dc:title>Tea</dc:title><meta:keyword>a</meta:keyword><meta:keyword>b</meta:keyword></office:meta></office:document-meta>'
    expect(odt(p('x'), { 'styles.xml': styles, 'meta.xml': meta }).metadata).toMatchObject({
      title: 'Tea',
      keywords: 'a, b',
      language: 'de-AT',
    })
  })
})

describe('an OpenDocument spreadsheet', () => {
  const ods = (sheets: string): EngineOutput =>
    readOds(inputOf(odf(`<office:spreadsheet>${sheets}</office:spreadsheet>`)), LIMITS)
  const cell = (text: string): string => `<table:table-cell>${p(text)}</table:table-cell>`

  it('is a table for each visible sheet, without the empty rest of it', () => {
    const rows = `<table:table-row>${cell('a')}<table:table-cell table:number-columns-repeated="2"/>${cell('b')}<table:table-cell table:number-columns-repeated="16000"/></table:table-row>`
    const rest =
      '<table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
    const { markdown, pages } = ods(
      `<table:table table:name="Tea">${rows}<table:table-row>${cell('12.50 €')}</table:table-row>${rest}</table:table><table:table table:name="H" table:style-name="H">${rows}</table:table>`,
    )
    expect(markdown).toBe('## Tea\n\n| a | b |\n| --- | --- |\n| 12.50 € | |\n')
    expect(pages).toBe(1)
  })

  it('that repeats cells without end is refused', () => {
    const bomb = `<table:table><table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="16384">${p('x')}</table:table-cell></table:table-row></table:table>`
    expect(() => ods(bomb)).toThrow(EngineFault)
  })
})

describe('an OpenDocument presentation', () => {
  it('is its slides, title first, by the places on them, with their notes', () => {
    const frame = (text: string, y: number, more = ''): string =>
      `<draw:frame svg:x="1cm" svg:y="${y}cm" svg:width="5cm" svg:height="1cm" ${more}><draw:text-box>${p(text)}</draw:text-box></draw:frame>`
    const pages =
      `<draw:page>${frame('below', 9)}${frame('above', 4)}${frame('T', 20, 'presentation:class="title"')}<presentation:notes>${frame('Say it', 1)}</presentation:notes></draw:page>` +
      `<draw:page>${frame('second', 1)}</draw:page>`
    const { markdown, pages: count } = readOdp(
      inputOf(odf(`<office:presentation>${pages}</office:presentation>`)),
      LIMITS,
    )
    expect(markdown).toBe('## T\n\nabove\n\nbelow\n\n### Notes\n\nSay it\n\n<!-- slide 2 -->\n\nsecond\n')
    expect(count).toBe(2)
  })
})

describe('an OpenDocument file that cannot be read', () => {
  const faultOf = (bytes: Uint8Array): string => {
    try {
      return readOdt(inputOf(bytes), LIMITS).markdown
    } catch (error) {
      if (error instanceof EngineFault) return error.fault
      throw error
    }
  }

  it.each([
    [
      'with a password',
      'encrypted',
      odf('', { 'META-INF/manifest.xml': '<manifest:manifest><manifest:encryption-data/></manifest:manifest>' }),
    ],
    ['without its content', 'broken', zipOf({ 'content.xml': '<x/>' })],
    ['with entities of its own', 'broken', zipOf({ 'content.xml': '<!DOCTYPE x [<!ENTITY a "b">]><x/>' })],
    ['nested too deeply', 'too_large', odf('<text:span>'.repeat(100_000))],
    [
      'with circles among its styles is read',
      'x\n',
      odf(`<office:text><text:p text:style-name="S">x</text:p></office:text>`, {
        'styles.xml':
          '<s><office:styles><style:style style:name="S" style:family="paragraph" style:parent-style-name="S"/></office:styles></s>',
      }),
    ],
  ])('%s: %s', (_name, expected, bytes) => {
    expect(faultOf(bytes)).toBe(expected)
  })
})
