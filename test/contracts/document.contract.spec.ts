import { describe, expect } from '@jest/globals'
import { startReaderSimulator } from '@multi-model-gateway/sandbox/reader/reader.simulator.js'
import { documentPart, PARSE_PATH } from '../support/document-lab.js'
import type { RawAnswer } from '../support/gateway.js'
import { READER_DIALECTS } from '../support/provider-labs.js'
import { upload } from '../support/upload-server.js'
import { describeProvider } from './provider.contract.js'
import { TASK_CODES } from './provider-lab.js'

const KEY = 'canary4f1d7c0Qz83Lw'

/** Of each page and file: what was read before is not read again. */
let documents = 0

const expectAnswer = ({ text }: RawAnswer): void => {
  expect(JSON.parse(text)).toMatchObject({ code: 0, data: { markdown: expect.stringMatching(/^# /) } })
}

describe.each(READER_DIALECTS)('the dialect %s', (dialect) => {
  describeProvider('documents by a reader', {
    provider: 'reader',
    options: { dialect },
    credentials: KEY,
    start: () => startReaderSimulator({ apiKey: KEY }),
    forms: [
      {
        name: 'a page',
        errors: TASK_CODES,
        request: () => ({ path: PARSE_PATH, body: JSON.stringify({ url: `https://example.org/${++documents}` }) }),
        expectAnswer,
        usage: { units: { pages: expect.any(Number) } },
      },
      {
        name: 'a file',
        errors: TASK_CODES,
        request: () => upload([documentPart(`<p>${++documents}</p>`, 'page.html', 'text/html')], PARSE_PATH),
        expectAnswer,
        usage: { units: { pages: expect.any(Number) } },
      },
    ],
  })
})
