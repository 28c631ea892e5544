import { describe, expect, it } from '@jest/globals'
import { onePage, pagesOf, pdfOf, textAt } from '../../../../test/support/pdf-files.js'
import { structureOf } from './structure-tree.js'

describe('structureOf', () => {
  it('keeps roles, descriptions and contents of the tree in their order', () => {
    const tree = {
      role: 'Root',
      children: [
        {
          role: 'P',
          lang: 'en',
          children: [
            { type: 'content', id: 'a' },
            { type: 'object', id: '7R' },
          ],
        },
        { role: 'Figure', alt: 'A kettle', children: [] },
      ],
    }
    expect(structureOf(tree)).toEqual({
      role: 'Root',
      alt: '',
      children: [
        { role: 'P', alt: '', children: ['a'] },
        { role: 'Figure', alt: 'A kettle', children: [] },
      ],
    })
  })

  it('is undefined without content, and bounded for a tree without end', () => {
    expect(structureOf(null)).toBeUndefined()
    expect(structureOf({ role: 'Root', children: [{ role: 'P', children: 'none' }] })).toBeUndefined()
    const leaf = { type: 'content', id: 'a' }
    expect(structureOf({ role: 'Root', children: Array.from({ length: 60_000 }, () => leaf) })).toBeUndefined()
    const endless: { role: string; children: unknown[] } = { role: 'Div', children: [leaf] }
    endless.children.push(endless)
    expect(JSON.stringify(structureOf(endless)).split('Div').length).toBeLessThan(100)
  })
})

describe('the pages of a tagged file', () => {
  const content =
    `/H1 << /MCID 0 >> BDC ${textAt(100, 700, 'Kettles')} EMC ` +
    `/Artifact BMC ${textAt(100, 30, 'Page 1')} EMC ` +
    `/P << /MCID 1 >> BDC ${textAt(100, 650, 'They boil')} /Span BMC ${textAt(160, 650, 'water.')} EMC EMC`
  const objects = new Map([
    [100, { text: '<< /Type /StructTreeRoot /K [101 0 R] /ParentTree 104 0 R >>' }],
    [101, { text: '<< /S /Document /P 100 0 R /K [102 0 R 103 0 R] >>' }],
    [102, { text: '<< /S /H1 /P 101 0 R /Pg 10 0 R /K 0 >>' }],
    [103, { text: '<< /S /P /P 101 0 R /Pg 10 0 R /K 1 >>' }],
    [104, { text: '<< /Nums [0 [102 0 R 103 0 R]] >>' }],
  ])

  it('have a tree, and runs that say which content of it they are', async () => {
    const page = { content, entries: '/StructParents 0' }
    const [read] = await pagesOf(pdfOf({ pages: [page], objects, catalogEntries: '/StructTreeRoot 100 0 R' }))
    const [heading, paragraph] =
      read?.structure?.children.flatMap((one) => (typeof one === 'string' ? [] : one.children)) ?? []
    expect([heading, paragraph]).toMatchObject([{ role: 'H1' }, { role: 'P' }])
    const idOf = (text: string) => read?.runs.find((run) => run.text === text)?.contentId
    expect(heading).toMatchObject({ children: [idOf('Kettles')] })
    expect(paragraph).toMatchObject({ children: [idOf('They boil')] })
    expect([idOf('water.'), idOf('Page 1')]).toEqual([idOf('They boil'), 'artifact'])
  })

  it('have neither without tags', async () => {
    const page = await onePage(content)
    expect(page.structure).toBeUndefined()
    expect(page.runs.map(({ contentId }) => contentId)).toEqual([undefined, undefined, undefined, undefined])
  })
})
