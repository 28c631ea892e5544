import type { EngineOutput } from '@multi-model-gateway/document-engine/model/document.js'
import { readDocx } from '@multi-model-gateway/document-engine/office/docx.js'

const LIMITS = { pages: 500, decodedBytes: 5_000_000 }

/** Has the engine read a Word document that may unpack to 5 MB. */
export const readWord = (bytes: Uint8Array): Promise<EngineOutput> =>
  readDocx({ bytes, contentType: '', name: 'x.docx', baseUrl: '' }, LIMITS)
