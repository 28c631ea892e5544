import { afterEach, describe, expect, it, jest } from '@jest/globals'
import {
  AlignmentType,
  Document,
  ExternalHyperlink,
  type FileChild,
  FootnoteReferenceRun,
  HeadingLevel,
  ImageRun,
  InternalHyperlink,
  type IPropertiesOptions,
  type IRunOptions,
  LevelFormat,
  Packer,
  Paragraph,
  Table,
  TableCell,
  TableRow,
  TextRun,
} from 'docx'
import mammoth from 'mammoth'
import {
  coreProperties,
  readWord,
  relations,
  WORD,
  wordFile,
  wordParagraph,
} from '../../../../test/support/office-files.js'
import { EngineFault, type EngineOutput } from '../model/document.js'
import { readDocx } from './docx.js'

async function made(children: readonly FileChild[], more: Partial<IPropertiesOptions> = {}): Promise<EngineOutput> {
  const buffer = await Packer.toBuffer(new Document({ ...more, sections: [{ children }] }))
  return readWord(new Uint8Array(buffer))
}

const markdownOf = async (...children: readonly FileChild[]): Promise<string> => (await made(children)).markdown
// The types of strings would have it that `bold` is their own, and long out of use.
const run = (options: IRunOptions): TextRun => new TextRun(options)
const cell = (text: string, columnSpan = 1): TableCell => new TableCell({ columnSpan, children: [new Paragraph(text)] })
const withStyle = (style: string, text: string): string =>
  `<w:p><w:pPr><w:pStyle w:val="${style}"/></w:pPr><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`

/** A document whose styles have these names; their ids are S0, S1, … */
function styled(names: readonly string[], body: string): Uint8Array {
  const styles = names.map(
    (name, index) => `<w:style w:type="paragraph" w:styleId="S${index}"><w:name w:val="${name}"/></w:style>`,
  )
  return wordFile(body, {
    'word/_rels/document.xml.rels': relations([{ id: 'r1', type: 'styles', target: 'styles.xml' }]),
    'word/styles.xml': `<w:styles ${WORD}>${styles.join('')}</w:styles>`,
  })
}

describe('a Word document', () => {
  it('has its title, headings and paragraphs', async () => {
    const { markdown, metadata, kind } = await made([
      new Paragraph({ text: 'Kettles', heading: HeadingLevel.TITLE }),
      new Paragraph({ text: 'Iron', heading: HeadingLevel.HEADING_2, alignment: AlignmentType.CENTER }),
      new Paragraph('Words & <more> words.'),
    ])
    expect(markdown).toBe('# Kettles\n\n## Iron\n\nWords & \\<more> words.\n')
    expect({ kind, title: metadata.title }).toEqual({ kind: 'docx', title: 'Kettles' })
  })

  it('has emphasis and links, but no links to places in itself', async () => {
    const paragraph = new Paragraph({
      children: [
        run({ text: 'bold', bold: true, font: 'Arial', size: 40, color: 'FF0000' }),
        new TextRun({ text: ' and ', language: { value: 'en-US' } }),
        run({ text: 'italic', italics: true }),
        new TextRun(' '),
        run({ text: 'gone', strike: true }),
        new TextRun(' '),
        new ExternalHyperlink({ link: 'https://example.org/a', children: [new TextRun('a link')] }),
        new TextRun(' '),
        new InternalHyperlink({ anchor: 'there', children: [new TextRun('see there')] }),
      ],
    })
    expect(await markdownOf(paragraph)).toBe(
      '**bold** and *italic* ~~gone~~ [a link](https://example.org/a) see there\n',
    )
  })

  it('has nested lists of both kinds', async () => {
    const level = (index: number): { level: number; format: 'decimal'; text: string } => ({
      level: index,
      format: LevelFormat.DECIMAL,
      text: `%${index + 1}.`,
    })
    const numbering = { config: [{ reference: 'n', levels: [level(0), level(1)] }] }
    const { markdown } = await made(
      [
        new Paragraph({ text: 'one', bullet: { level: 0 } }),
        new Paragraph({ text: 'inner', bullet: { level: 1 } }),
        new Paragraph({ text: 'two', bullet: { level: 0 } }),
        new Paragraph('between'),
        new Paragraph({ text: 'first', numbering: { reference: 'n', level: 0 } }),
        new Paragraph({ text: 'second', numbering: { reference: 'n', level: 0 } }),
      ],
      { numbering },
    )
    expect(markdown).toBe('- one\n  - inner\n- two\n\nbetween\n\n1. first\n2. second\n')
  })

  it('has tables with spans', async () => {
    const table = new Table({
      rows: [
        new TableRow({ tableHeader: true, children: [cell('Name'), cell('Price | €')] }),
        new TableRow({ children: [cell('Kettle'), cell('12')] }),
        new TableRow({ children: [cell('wide', 2)] }),
      ],
    })
    expect(await markdownOf(table)).toBe('| Name | Price \\| € |\n| --- | --- |\n| Kettle | 12 |\n| wide | |\n')
  })

  it('has its footnotes at the end, each as one paragraph', async () => {
    const { markdown } = await made(
      [
        new Paragraph({
          children: [new TextRun('One'), new FootnoteReferenceRun(2), new TextRun(' two'), new FootnoteReferenceRun(1)],
        }),
      ],
      {
        footnotes: {
          1: { children: [new Paragraph('Later.')] },
          2: { children: [new Paragraph('First.'), new Paragraph('More.')] },
        },
      },
    )
    expect(markdown).toBe('One[^1] two[^2]\n\n[^1]: First. More.\n\n[^2]: Later.\n')
  })

  it('has the words in place of its pictures', async () => {
    const picture = (description: string): Paragraph =>
      new Paragraph({
        children: [
          new ImageRun({
            type: 'png',
            data: Buffer.alloc(40_000),
            transformation: { width: 10, height: 10 },
            altText: { name: 'n', title: 't', description },
          }),
        ],
      })
    expect(
      await markdownOf(
        picture('A red kettle Description automatically generated'),
        picture('image1.png'),
        new Paragraph('end'),
      ),
    ).toBe('A red kettle\n\nend\n')
  })

  it('has quotes and code by the names of their styles, and no table of contents', async () => {
    const body = [
      withStyle('S0', 'a quote'),
      withStyle('S1', 'if x:'),
      withStyle('S1', '    y *= 2'),
      withStyle('S2', 'Chapter ... 7'),
      withStyle('S3', 'Contents'),
    ]
    const names = ['Quote', 'Source Code', 'toc 1', 'TOC Heading']
    expect((await readWord(styled(names, body.join('')))).markdown).toBe('> a quote\n\n```\nif x:\n    y *= 2\n```\n')
  })

  it('does not show what was deleted, and shows what was inserted', async () => {
    const run = (text: string, tag = 't'): string => `<w:r><w:${tag}>${text}</w:${tag}></w:r>`
    const body = `<w:p>${run('a')}<w:del>${run('b', 'delText')}</w:del><w:ins>${run('c')}</w:ins></w:p>`
    expect((await readWord(wordFile(body))).markdown).toBe('ac\n')
  })

  it('prefers the title of its properties', async () => {
    const { metadata } = await made([new Paragraph({ text: 'Other', heading: HeadingLevel.TITLE })], {
      title: 'A plan',
      description: 'About tea',
      keywords: 'tea, cup',
    })
    expect(metadata).toMatchObject({ title: 'A plan', description: 'About tea', keywords: 'tea, cup' })
  })

  it('is found where its package says', async () => {
    const document = `<w:document ${WORD}><w:body>${wordParagraph('moved')}</w:body></w:document>`
    const bytes = wordFile('', {
      '_rels/.rels': relations([{ id: 'x', type: 'officeDocument', target: '/word/document2.xml' }]),
      'word/document.xml': 'not this',
      'word/document2.xml': document,
    })
    expect((await readWord(bytes)).markdown).toBe('moved\n')
  })

  it('has equations within its lines and between them', async () => {
    const power = '<m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>'
    const inline = `<w:p><w:r><w:t xml:space="preserve">If </w:t></w:r><m:oMath>${power}</m:oMath><w:r><w:t xml:space="preserve"> is 4, $5.</w:t></w:r></w:p>`
    const displayed = `<w:p><m:oMathPara><m:oMathParaPr/><m:oMath>${power}</m:oMath><m:oMath><m:new><m:r><m:t>y</m:t></m:r></m:new></m:oMath></m:oMathPara></w:p>`
    const { markdown, metadata } = await readWord(wordFile(inline + displayed))
    expect(markdown).toBe('If $x^{2}$ is 4, $5.\n\n$$\nx^{2}\n$$\n\n$$\ny\n$$\n')
    expect(metadata.warnings).toEqual([{ code: 'equations_unread', message: 'One equation is not read as a whole.' }])
  })

  it('has the lists that only its styles tell, with the number that each begins with', async () => {
    const numbering =
      '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>' +
      '<w:abstractNum w:abstractNumId="3"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val=" "/></w:lvl></w:abstractNum><w:num w:numId="3"><w:abstractNumId w:val="3"/></w:num>' +
      '<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>' +
      '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="2"/></w:num>'
    const style = (id: string, name: string, list: string): string =>
      `<w:style w:type="paragraph" w:styleId="${id}"><w:name w:val="${name}"/>${list && `<w:pPr><w:numPr><w:numId w:val="${list}"/></w:numPr></w:pPr>`}</w:style>`
    const bytes = wordFile(
      withStyle('B1', 'one') +
        withStyle('B2', 'inner') +
        withStyle('P', 'plain') +
        withStyle('N', 'three') +
        withStyle('P', 'between') +
        withStyle('N', '☒ four') +
        withStyle('Blank', 'more') +
        withStyle('N3', 'deep'),
      {
        'word/_rels/document.xml.rels': relations([
          { id: 'r1', type: 'styles', target: 'styles.xml' },
          { id: 'r2', type: 'numbering', target: 'numbering.xml' },
        ]),
        'word/styles.xml': `<w:styles ${WORD}>${style('B1', 'List Bullet', '1')}${style('B2', 'List Bullet 2', '1')}${style('P', 'Body', '')}${style('N', 'Steps', '2')}${style('Blank', 'More', '3')}${style('N3', 'List Number 2', '')}</w:styles>`,
        'word/numbering.xml': `<w:numbering ${WORD}>${numbering}</w:numbering>`,
      },
    )
    expect((await readWord(bytes)).markdown).toBe(
      '- one\n  - inner\n\nplain\n\n3. three\n\nbetween\n\n4. [x] four\n\n   more\n\n   1. deep\n',
    )
  })

  it('keeps tables with lists and tables within their cells', async () => {
    const cellOf = (...children: (Paragraph | Table)[]): TableCell => new TableCell({ children })
    const inner = new Table({ rows: [new TableRow({ children: [cell('p'), cell('q')] })] })
    const table = new Table({
      rows: [
        new TableRow({ children: [cell('Name'), cell('Parts')] }),
        new TableRow({
          children: [
            cell('Kettle'),
            cellOf(
              new Paragraph({ text: 'lid', bullet: { level: 0 } }),
              new Paragraph({ text: 'spout', bullet: { level: 0 } }),
            ),
          ],
        }),
        new TableRow({ children: [cell('Cup'), cellOf(inner)] }),
      ],
    })
    expect(await markdownOf(table)).toBe(
      '| Name | Parts |\n| --- | --- |\n| Kettle | - lid<br>- spout |\n| Cup | p q |\n',
    )
    const frame = new Table({ rows: [new TableRow({ children: [cellOf(new Paragraph('a'), new Paragraph('b'))] })] })
    expect(await markdownOf(frame)).toBe('a\n\nb\n')
  })

  it('has checkboxes as tasks, of content controls and of forms', async () => {
    const control = (mark: string, text: string): string =>
      '<w:p><w:sdt><w:sdtPr><w14:checkbox xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml">' +
      `<w14:checked w14:val="${mark}"/></w14:checkbox></w:sdtPr><w:sdtContent><w:r><w:t>☐</w:t></w:r></w:sdtContent></w:sdt>` +
      `<w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`
    const field =
      '<w:p><w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="1"/></w:checkBox></w:ffData></w:fldChar></w:r>' +
      '<w:r><w:instrText> FORMCHECKBOX </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t> wash</w:t></w:r></w:p>'
    const { markdown } = await readWord(
      wordFile(control('1', ' boil') + control('0', ' pour') + field + control('1', '')),
    )
    expect(markdown).toBe('- [x] boil\n- [ ] pour\n- [x] wash\n\n☒\n')
  })

  it('has code by the font, with its blank lines', async () => {
    const typed = (text: string): string =>
      `<w:r><w:rPr><w:rFonts w:ascii="Courier New"/></w:rPr><w:t xml:space="preserve">${text}</w:t></w:r>`
    const line = (text: string): string => `<w:p>${typed(text)}</w:p>`
    const prose = wordParagraph(
      'Words that are longer than the code beneath them, as they are in all documents of this kind.',
    )
    const character = '<w:r><w:rPr><w:rStyle w:val="X"/><w:rFonts w:ascii="Consolas"/></w:rPr><w:t>end()</w:t></w:r>'
    const mixed = `<w:p><w:r><w:t xml:space="preserve">Call </w:t></w:r>${typed('run()')}<w:r><w:t> or </w:t></w:r>${character}</w:p>`
    expect(
      (await readWord(wordFile(line('') + prose + line('if x:') + line('') + line('  y') + line('') + mixed))).markdown,
    ).toMatch(/kind\.\n\n```\nif x:\n\n {2}y\n```\n\nCall `run\(\)` or `end\(\)`\n$/)
    expect((await readWord(wordFile(line('A letter') + line('typed.')))).markdown).toBe('A letter\n\ntyped.\n')
    const empty = '<w:p><w:pPr><w:pStyle w:val="S0"/></w:pPr></w:p>'
    expect((await readWord(styled(['Code'], withStyle('S0', 'a') + empty + withStyle('S0', '  b')))).markdown).toBe(
      '```\na\n\n  b\n```\n',
    )
  })

  it('has the text of its boxes once, of the newer of two forms', async () => {
    const box = (text: string): string => `<w:txbxContent>${wordParagraph(text)}</w:txbxContent>`
    const drawing = `<w:drawing><wp:anchor><wp:docPr id="1"/><a:graphic><wps:txbx>${box('in a box')}</wps:txbx></a:graphic></wp:anchor></w:drawing>`
    const old = `<w:pict><v:textbox xmlns:v="urn:schemas-microsoft-com:vml">${box('in a box')}</v:textbox></w:pict>`
    const both = `<mc:AlternateContent><mc:Choice>${drawing}</mc:Choice><mc:Fallback>${old}</mc:Fallback></mc:AlternateContent>`
    const body = `<w:p><w:r><w:t>a</w:t></w:r><w:r>${both}</w:r></w:p><w:p><w:r>${old}</w:r></w:p>`
    expect((await readWord(wordFile(body))).markdown).toBe('a\n\nin a box\n\nin a box\n')
  })

  it('has its headers and footers once at the end, without numbers of pages', async () => {
    const field =
      '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGE </w:instrText></w:r>' +
      '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>7</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    const bytes = wordFile(wordParagraph('Text'), {
      'word/_rels/document.xml.rels': relations([
        { id: 'r1', type: 'header', target: 'header1.xml' },
        { id: 'r2', type: 'header', target: 'header2.xml' },
        { id: 'r3', type: 'footer', target: 'footer1.xml' },
      ]),
      'word/header1.xml': `<w:hdr ${WORD}>${wordParagraph('Kettle Ltd')}${wordParagraph('Text')}</w:hdr>`,
      'word/header2.xml': `<w:hdr ${WORD}>${wordParagraph('Kettle Ltd')}</w:hdr>`,
      'word/footer1.xml': `<w:ftr ${WORD}><w:p><w:r><w:t>No. 12</w:t><w:tab/><w:t>Page </w:t></w:r>${field}</w:p></w:ftr>`,
    })
    expect((await readWord(bytes)).markdown).toBe('Text\n\n---\n\nKettle Ltd\n\nNo. 12\n')
  })

  it('has comments as notes', async () => {
    const bytes = wordFile(
      '<w:p><w:r><w:t>Tea</w:t></w:r><w:r><w:commentReference w:id="0"/></w:r><w:r><w:t xml:space="preserve"> time</w:t></w:r></w:p>',
      {
        'word/_rels/document.xml.rels': relations([{ id: 'r1', type: 'comments', target: 'comments.xml' }]),
        'word/comments.xml': `<w:comments ${WORD}><w:comment w:id="0" w:author="Ann Lee" w:initials="AL">${wordParagraph('Coffee?')}</w:comment></w:comments>`,
      },
    )
    expect((await readWord(bytes)).markdown).toBe('Tea[^1] time\n\n[^1]: **Ann Lee:** Coffee?\n')
  })

  it('says its language, and how many pictures and objects are left out', async () => {
    const drawing = (more: string): string =>
      `<w:r><w:drawing><wp:inline><wp:docPr id="1"/><a:blip/>${more}</wp:inline></w:drawing></w:r>`
    const object =
      '<w:r><w:object><v:shape><v:imagedata/></v:shape><o:OLEObject ProgID="Excel.Sheet.12"/></w:object></w:r>'
    const body = `<w:p><w:r><w:t>a</w:t></w:r>${drawing('')}${drawing('')}${drawing('<a:decorative val="1"/>')}${object}</w:p>`
    const { metadata } = await readWord(
      wordFile(body, {
        'word/_rels/document.xml.rels': relations([{ id: 'r1', type: 'styles', target: 'styles.xml' }]),
        'word/styles.xml': `<w:styles ${WORD}><w:docDefaults><w:rPrDefault><w:rPr><w:lang w:val="de_at"/></w:rPr></w:rPrDefault></w:docDefaults></w:styles>`,
      }),
    )
    expect(metadata).toMatchObject({
      language: 'de-AT',
      warnings: [
        { code: 'pictures_dropped', message: '2 pictures have no description.' },
        { code: 'attachments_unread', message: 'One embedded object is not read.' },
      ],
    })
  })

  it('keeps words that look like markup', async () => {
    const body = wordParagraph('1 &lt; 2 &amp;amp; &lt;script&gt;alert(1)&lt;/script&gt; ]]&gt; &#x1F600;')
    expect((await readWord(wordFile(body))).markdown).toBe('1 < 2 \\&amp; \\<script>alert(1)\\</script> ]]> 😀\n')
  })
})

const read = () =>
  readDocx(
    { bytes: wordFile(wordParagraph('words')), contentType: '', name: '', baseUrl: '' },
    { pages: 500, decodedBytes: 5_000_000 },
  )

describe('A Word document that the library fails on', () => {
  afterEach(() => {
    jest.restoreAllMocks()
  })

  it('is damaged, and the log says of what', async () => {
    const cause = new TypeError('undefined has no children')
    jest.spyOn(mammoth, 'convertToHtml').mockRejectedValue(cause)
    await expect(read()).rejects.toMatchObject({ fault: 'broken', cause })
  })

  it('is not called damaged for want of memory', async () => {
    const thrown = new RangeError('Array buffer allocation failed')
    jest.spyOn(mammoth, 'convertToHtml').mockRejectedValue(thrown)
    await expect(read()).rejects.toBe(thrown)
  })
})

describe('a hostile Word document', () => {
  const faultOf = async (bytes: Uint8Array): Promise<string> => {
    try {
      return (await readWord(bytes)).markdown
    } catch (error) {
      if (error instanceof EngineFault) return error.fault
      throw error
    }
  }

  it('that unpacks to too much is refused', async () => {
    expect(await faultOf(wordFile(wordParagraph('x'.repeat(50_000_000))))).toBe('too_large')
  })

  it('whose picture is the bomb is read without it', async () => {
    const bytes = wordFile(wordParagraph('x'), { 'word/media/image1.png': new Uint8Array(50_000_000) })
    expect(await faultOf(bytes)).toBe('x\n')
  })

  it('that is nested deeply is refused', async () => {
    expect(await faultOf(wordFile('<w:ins>'.repeat(200_000)))).toBe('too_large')
  })

  it('nested as deeply as allowed is read', async () => {
    const deep = `${'<w:ins>'.repeat(240)}${wordParagraph('x')}${'</w:ins>'.repeat(240)}`
    expect(await faultOf(wordFile(deep))).toBe('x\n')
  })

  it('of very many elements is refused', async () => {
    expect(await faultOf(wordFile('<w:p/>'.repeat(300_000)))).toBe('too_large')
  })

  it('with entities of its own is refused', async () => {
    const laughs = `<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>`
    const document = `${laughs}<w:document ${WORD}><w:body>${wordParagraph('&b;')}</w:body></w:document>`
    expect(await faultOf(wordFile('', { 'word/document.xml': document }))).toBe('broken')
  })

  it('with entities of its own in its properties is refused', async () => {
    const core = `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>${coreProperties('<dc:title>&a;</dc:title>')}`
    expect(await faultOf(wordFile(wordParagraph('x'), { 'docProps/core.xml': core }))).toBe('broken')
  })

  it.each([
    ['no document', wordFile('', { 'word/document.xml': '' })],
    ['no body', wordFile('', { 'word/document.xml': `<w:document ${WORD}/>` })],
    ['something else as its document', wordFile('', { 'word/document.xml': '<html><body>x</body></html>' })],
    [
      'a document that is not there',
      wordFile('', { '_rels/.rels': relations([{ id: 'x', type: 'officeDocument', target: 'gone.xml' }]) }),
    ],
  ])('with %s is damaged, in words of ours', async (_name, bytes) => {
    await expect(readWord(bytes)).rejects.toThrow('The file is damaged: it is no complete Word document.')
  })
})
