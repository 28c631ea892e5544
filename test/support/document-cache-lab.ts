import { type DocumentLab, startDocumentLab } from './document-lab.js'
import { pageOf } from './document-target.js'
import { TEST_KEY } from './gateway.js'

export const NEWER = pageOf('Teapots', 'A teapot is a vessel in which tea is left to draw for a while.')

const OTHER_KEY = 'other-gateway-key'
/** The headers of a caller beside the usual one. */
export const OTHER_CALLER = { authorization: `Bearer ${OTHER_KEY}` }

/** A lab with two callers. */
export const startDocumentCacheLab = (): Promise<DocumentLab> =>
  startDocumentLab({
    keys: [
      { id: 'test', key: TEST_KEY },
      { id: 'other', key: OTHER_KEY },
    ],
  })

/** Whether a page was read before, as 0 or 1, and its title. */
export const seenOf = async (reply: ReturnType<DocumentLab['parse']>): Promise<[number, string]> => {
  const { metadata } = (await reply).body.data
  return [metadata.cached, metadata.title]
}
