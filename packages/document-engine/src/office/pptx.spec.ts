import { describe, expect, it } from '@jest/globals'
import {
  coreProperties,
  type Parts,
  presentationFile,
  slideParagraph as paragraph,
  type SlidePart,
  slideShape as shape,
} from '../../../../test/support/office-files.js'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { readPptx } from './pptx.js'

const read = (slides: readonly SlidePart[], more?: Parts): EngineOutput =>
  readPptx(
    { bytes: presentationFile(slides, more), contentType: '', name: 'x.pptx', baseUrl: '' },
    { pages: 500, decodedBytes: 5_000_000 },
  )
const markdownOf = (shapes: string, more: Partial<SlidePart> = {}, parts?: Parts): string =>
  read([{ shapes, ...more }], parts).markdown

const frame = (content: string): string =>
  `<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="1" name="x"/></p:nvGraphicFramePr><a:graphic><a:graphicData>${content}</a:graphicData></a:graphic></p:graphicFrame>`
const level = (index: number, more = ''): string => `<a:pPr lvl="${index}">${more}</a:pPr>`

describe('a presentation', () => {
  it('is its slides in the order of the show, marked from the second on', () => {
    const { markdown, pages, metadata, kind } = read([
      { shapes: shape(paragraph('First'), 'ctrTitle') + shape(paragraph('Sub'), 'subTitle') },
      { shapes: shape(paragraph('Second'), 'title') },
    ])
    expect(markdown).toBe('## First\n\nSub\n\n<!-- slide 2 -->\n\n## Second\n')
    expect({ pages, title: metadata.title, kind }).toEqual({ pages: 2, title: 'First', kind: 'pptx' })
  })

  it('has lists by the levels of its paragraphs', () => {
    const body = [
      paragraph('one'),
      paragraph('inner', level(1)),
      paragraph('deep', level(5)),
      paragraph('two'),
      paragraph('plain', level(0, '<a:buNone/>')),
      paragraph('three', level(0, '<a:buAutoNum type="arabicPeriod" startAt="3"/>')),
      paragraph('four', level(0, '<a:buAutoNum type="arabicPeriod"/>')),
    ]
    expect(markdownOf(shape(body.join(''), 'body'))).toBe(
      '- one\n  - inner\n    - deep\n- two\n\nplain\n\n3. three\n4. four\n',
    )
  })

  it('has plain paragraphs in text boxes, and where the layout of the slide says so', () => {
    expect(markdownOf(shape(paragraph('a') + paragraph('b')))).toBe('a\n\nb\n')
    const list = '<a:lstStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></a:lstStyle>'
    const layout = `<p:sldLayout><p:cSld><p:spTree>${shape(list, 'body')}</p:spTree></p:cSld></p:sldLayout>`
    const relations = [{ id: 'l', type: 'slideLayout', target: '../slideLayouts/slideLayout1.xml' }]
    expect(
      markdownOf(shape(paragraph('a'), 'body'), { relations }, { 'ppt/slideLayouts/slideLayout1.xml': layout }),
    ).toBe('a\n')
  })

  it('has emphasis, line breaks and links', () => {
    const runs =
      '<a:p><a:r><a:rPr b="1"/><a:t>bold</a:t></a:r><a:r><a:t> &amp; </a:t></a:r><a:r><a:rPr i="1"/><a:t>italic</a:t></a:r>' +
      '<a:r><a:rPr strike="sngStrike"/><a:t>gone</a:t></a:r><a:r><a:t> x</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>2</a:t></a:r><a:r><a:t> </a:t></a:r><a:r><a:rPr><a:latin typeface="Courier New"/></a:rPr><a:t>run()</a:t></a:r>' +
      '<a:br/><a:r><a:rPr><a:hlinkClick r:id="h"/></a:rPr><a:t>site</a:t></a:r>' +
      '<a:r><a:rPr><a:hlinkClick r:id="j"/></a:rPr><a:t> bad</a:t></a:r></a:p>'
    const relations = [
      { id: 'h', type: 'hyperlink', target: 'https://example.org/?a=1&amp;b=2', isExternal: true },
      { id: 'j', type: 'hyperlink', target: 'javascript:alert(1)', isExternal: true },
    ]
    expect(markdownOf(shape(runs), { relations })).toBe(
      '**bold** & *italic*~~gone~~ x² `run()`\\\n[site](https://example.org/?a=1&b=2) bad\n',
    )
  })

  it('has tables', () => {
    const cell = (text: string, attributes = ''): string =>
      `<a:tc ${attributes}><a:txBody>${text && paragraph(text)}</a:txBody></a:tc>`
    const table =
      `<a:tbl><a:tr>${cell('a')}${cell('b')}</a:tr><a:tr>${cell('wide', 'gridSpan="2"')}${cell('', 'hMerge="1"')}</a:tr>` +
      `<a:tr>${cell('c', 'vMerge="0"')}${cell('d')}</a:tr></a:tbl>`
    expect(markdownOf(frame(table))).toBe('| a | b |\n| --- | --- |\n| wide | |\n| c | d |\n')
  })

  it('has the numbers of its charts', () => {
    const points = (tag: string, values: readonly string[], format = ''): string =>
      `<c:${tag}>${format}${values.map((value, index) => `<c:pt idx="${index}"><c:v>${value}</c:v></c:pt>`).join('')}</c:${tag}>`
    const chart =
      '<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Sales</a:t></a:r></a:p></c:rich></c:tx></c:title>' +
      `<c:plotArea><c:barChart><c:ser><c:tx><c:strRef>${points('strCache', ['Tea'])}</c:strRef></c:tx>` +
      `<c:cat><c:numRef>${points('numCache', ['45413', '45414'], '<c:formatCode>yyyy-mm-dd</c:formatCode>')}</c:numRef></c:cat>` +
      `<c:val><c:numRef>${points('numCache', ['4.30', '5.0'])}</c:numRef></c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>`
    const relations = [{ id: 'c', type: 'chart', target: '../charts/chart1.xml' }]
    expect(markdownOf(frame('<c:chart r:id="c"/>'), { relations }, { 'ppt/charts/chart1.xml': chart })).toBe(
      'Sales\n\n| | Tea |\n| --- | --- |\n| 2024-05-01 | 4.3 |\n| 2024-05-02 | 5 |\n',
    )
  })

  it('has the words of its diagrams, groups and pictures', () => {
    const data = `<dgm:dataModel><dgm:ptLst><dgm:pt><dgm:t>${paragraph('step')}</dgm:t></dgm:pt><dgm:pt/></dgm:ptLst></dgm:dataModel>`
    const relations = [{ id: 'd', type: 'diagramData', target: '../diagrams/data1.xml' }]
    const group = `<p:grpSp><p:grpSp>${shape(paragraph('in a group'))}</p:grpSp></p:grpSp>`
    const picture = '<p:pic><p:nvPicPr><p:cNvPr id="1" name="x" descr="A cup"/></p:nvPicPr></p:pic>'
    expect(
      markdownOf(frame('<dgm:relIds r:dm="d"/>') + group + picture, { relations }, { 'ppt/diagrams/data1.xml': data }),
    ).toBe('- step\n\nin a group\n\nA cup\n')
  })

  it('is in the order of the places on the slide, its title first', () => {
    const at = (text: string, x: number, y: number, width = 100, height = 50): string =>
      shape(paragraph(text)).replace('<p:txBody>', `<p:spPr>${place('xfrm', x, y, width, height)}</p:spPr><p:txBody>`)
    const place = (name: string, x: number, y: number, width: number, height: number): string =>
      `<a:${name}><a:off x="${x}" y="${y}"/><a:ext cx="${width}" cy="${height}"/></a:${name}>`
    const group =
      '<p:grpSp><p:grpSpPr><a:xfrm><a:off x="0" y="100"/><a:ext cx="100" cy="300"/><a:chOff x="0" y="0"/><a:chExt cx="10" cy="30"/></a:xfrm></p:grpSpPr>' +
      `${at('left, below', 0, 20, 10, 10)}${at('left', 0, 0, 10, 10)}</p:grpSp>`
    const shapes = [
      at('bottom', 0, 500, 300),
      at('right', 200, 120, 100, 200),
      at('right, below', 200, 330),
      group,
      at('above', 0, 0, 300),
      shape(paragraph('T'), 'title'),
    ]
    expect(markdownOf(shapes.join(''))).toBe(
      '## T\n\nabove\n\nleft\n\nleft, below\n\nright\n\nright, below\n\nbottom\n',
    )
  })

  it('knows the places of the layout, and says what it leaves out on which slide', () => {
    const placed = (index: number, y: number): string =>
      `<p:sp><p:nvSpPr><p:nvPr><p:ph type="body" idx="${index}"/></p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x="0" y="${y}"/><a:ext cx="9" cy="9"/></a:xfrm></p:spPr></p:sp>`
    const layout = `<p:sldLayout><p:cSld><p:spTree>${placed(1, 50)}${placed(2, 0)}</p:spTree></p:cSld></p:sldLayout>`
    const second = shape('<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>b</a:t></a:r></a:p>', 'body')
    const first = shape('<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>a</a:t></a:r></a:p>', 'body').replace(
      'idx="1"',
      'idx="2"',
    )
    const picture = '<p:pic><p:nvPicPr><p:cNvPr id="1" name="x"/></p:nvPicPr></p:pic>'
    const relations = [{ id: 'l', type: 'slideLayout', target: '../slideLayouts/slideLayout1.xml' }]
    const { markdown, metadata } = read(
      [{ shapes: '' }, { shapes: second + first + picture + frame('<p:oleObj/>'), relations }],
      {
        'ppt/slideLayouts/slideLayout1.xml': layout,
      },
    )
    expect(markdown).toBe('<!-- slide 2 -->\n\na\n\nb\n')
    expect(metadata.warnings).toEqual([
      { code: 'pictures_dropped', message: 'One picture has no description.', pages: [2] },
      { code: 'attachments_unread', message: 'One embedded object is not read.', pages: [2] },
    ])
  })

  it('has code by its font', () => {
    const typed = (text: string): string => `<a:r><a:rPr><a:latin typeface="Courier"/></a:rPr><a:t>${text}</a:t></a:r>`
    const lines = `<a:p>${typed('if')}${typed(' ')}${typed('x:')}<a:br/>${typed('  y')}</a:p><a:p>${typed('z')}</a:p>`
    expect(markdownOf(shape(lines + paragraph('end')))).toBe('```\nif x:\n  y\nz\n```\n\nend\n')
  })

  it('has equations', () => {
    const equation =
      '<m:oMath><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath>'
    const alternatives = `<a:p><a:r><a:t>If </a:t></a:r><mc:AlternateContent><mc:Choice><a14:m>${equation}</a14:m></mc:Choice><mc:Fallback><a:r><a:t>?</a:t></a:r></mc:Fallback></mc:AlternateContent></a:p>`
    const displayed = `<a:p><a14:m><m:oMathPara>${equation}</m:oMathPara></a14:m></a:p>`
    expect(markdownOf(shape(alternatives + displayed))).toBe('If $x^{2}$\n\n$$\nx^{2}\n$$\n')
  })

  it('has its notes under a heading of their own', () => {
    const notes = `<p:notes><p:cSld><p:spTree>${shape(paragraph('Say hello'), 'body')}${shape(paragraph('7'), 'sldNum')}</p:spTree></p:cSld></p:notes>`
    const relations = [{ id: 'n', type: 'notesSlide', target: '../notesSlides/n1.xml' }]
    expect(markdownOf(shape(paragraph('T'), 'title'), { relations }, { 'ppt/notesSlides/n1.xml': notes })).toBe(
      '## T\n\n### Notes\n\nSay hello\n',
    )
  })

  it('shows neither hidden slides and shapes nor what stands on every slide', () => {
    const hidden = shape(paragraph('hidden')).replace('name="x"', 'name="x" hidden="1"')
    const { markdown, pages } = read([
      { shapes: shape(paragraph('no')), isHidden: true },
      {
        shapes: `${hidden}${shape(paragraph('7'), 'sldNum')}${shape(paragraph('2024'), 'dt')}${shape(paragraph('yes'))}`,
      },
    ])
    expect({ markdown, pages }).toEqual({ markdown: 'yes\n', pages: 1 })
  })

  it('prefers the title of its properties, unless a program made it up', () => {
    const slides = [{ shapes: shape(paragraph('Slide'), 'title') }]
    const titled = (title: string): string =>
      read(slides, { 'docProps/core.xml': coreProperties(`<dc:title>${title}</dc:title>`) }).metadata.title
    expect(titled('A talk')).toBe('A talk')
    expect(titled('PowerPoint Presentation')).toBe('Slide')
  })

  it('without a word is empty', () => {
    expect(read([{ shapes: '' }, { shapes: shape('<a:p/>', 'title') }]).markdown).toBe('')
  })
})

describe('a hostile presentation', () => {
  const faultOf = (action: () => EngineOutput): string => {
    try {
      return action().markdown
    } catch (error) {
      if (error instanceof EngineFault) return error.fault
      throw error
    }
  }

  it('with entities of its own is refused', () => {
    const slide = '<!DOCTYPE x [<!ENTITY a "ha">]><p:sld/>'
    expect(faultOf(() => read([{ shapes: '' }], { 'ppt/slides/slide1.xml': slide }))).toBe('broken')
  })

  it('that is nested deeply, or of very many elements, is refused', () => {
    expect(faultOf(() => read([{ shapes: '<p:grpSp>'.repeat(100_000) }]))).toBe('too_large')
    expect(faultOf(() => read([{ shapes: '<a:p/>'.repeat(600_000) }]))).toBe('too_large')
  })

  it('that shows one slide a million times is refused', () => {
    const list = '<p:sldId id="256" r:id="rId1"/>'.repeat(100_000)
    const presentation = `<p:presentation xmlns:r="r"><p:sldIdLst>${list}</p:sldIdLst></p:presentation>`
    expect(
      faultOf(() => read([{ shapes: shape(paragraph('x'.repeat(1000))) }], { 'ppt/presentation.xml': presentation })),
    ).toBe('too_large')
  })

  it('whose chart has a category of its own for each of many series is refused', () => {
    const series = Array.from(
      { length: 1000 },
      (_, index) => `<c:ser><c:val><c:pt idx="${index}"><c:v>1</c:v></c:pt></c:val></c:ser>`,
    )
    const chart = `<c:chartSpace><c:chart><c:plotArea><c:barChart>${series.join('')}</c:barChart></c:plotArea></c:chart></c:chartSpace>`
    const relations = [{ id: 'c', type: 'chart', target: '../charts/chart1.xml' }]
    const slides = [{ shapes: frame('<c:chart r:id="c"/>'), relations }]
    expect(faultOf(() => read(slides, { 'ppt/charts/chart1.xml': chart }))).toBe('too_large')
  })

  it('without its parts is damaged', () => {
    expect(faultOf(() => read([], { 'ppt/presentation.xml': 'no XML' }))).toBe('broken')
  })
})
