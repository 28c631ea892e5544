import { describe, expect, it } from '@jest/globals'
import { markdownOf } from '../../../../../test/support/pdf-pages.js'
import { cpuMs } from '../../../../../test/support/cpu-time.js'

const CHARACTERS = 60_000
/** Each takes less than a tenth of it; a quadratic step takes many times as long. */
const LONGEST_MS = 2000

describe('a line of a PDF without end', () => {
  it.each(['.', '. ', 'a', 'a-', '-', '\u00a0', '1.', '1. ', '[', '(', '*', '_', '`', '|', '<', '&', '•', '— ', '中'])(
    'of nothing but %j takes time in proportion to its length',
    (piece) => {
      const text = piece.repeat(CHARACTERS / piece.length)
      const startedAtMs = cpuMs()
      const markdown = markdownOf((page) => {
        page.text(`x${text}!`, 50, 100, { width: 400 }).text(`${text}x-`, 50, 112, { width: 400 })
        page.text(text, 50, 124, { width: 400 }).text('and the end', 50, 136, { width: 400 })
      })
      expect(cpuMs() - startedAtMs).toBeLessThan(LONGEST_MS)
      expect(markdown).toContain('and the end')
    },
  )
})
