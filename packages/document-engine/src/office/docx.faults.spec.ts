import { afterEach, describe, expect, it, jest } from '@jest/globals'
import mammoth from 'mammoth'
import { wordFile, wordParagraph } from '../../../../test/support/office-files.js'
import { readDocx } from './docx.js'

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
