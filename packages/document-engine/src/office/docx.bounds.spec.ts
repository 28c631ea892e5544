import { describe, expect, it } from '@jest/globals'
import { coreProperties, relations, WORD, wordFile, wordParagraph } from '../../../../test/support/office-files.js'
import { readWord } from '../../../../test/support/read-word.js'
import { EngineFault } from '../model/document.js'

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
