import { pagesToMarkdown } from '@multi-model-gateway/document-engine/pdf/layout/pages-to-markdown.js'
import type { LinkArea, PdfPage, Rule, TextRun } from '@multi-model-gateway/document-engine/pdf/layout/pdf-page.js'

export type RunLook = Partial<Omit<TextRun, 'text' | 'x' | 'y'>>

/** Every character of the pages made here is half an em wide. */
export const ADVANCE_EM = 0.5

/** A page of 600 × 800 points, written piece by piece. */
export class PageMaker {
  private readonly runs: TextRun[] = []
  private readonly rules: Rule[] = []
  private readonly links: LinkArea[] = []

  constructor(private readonly number = 1) {}

  text(text: string, x: number, y: number, look: RunLook = {}): this {
    const fontSize = look.fontSize ?? 10
    const width = text.length * fontSize * ADVANCE_EM
    const plain = { fontSize, width, font: 'F1', isBold: false, isItalic: false, isFixedPitch: false }
    this.runs.push({ text, x, y, ...plain, ...look })
    return this
  }

  /** Lines below each other, `leading` apart. */
  lines(texts: readonly string[], x: number, y: number, look: RunLook = {}, leading = 12): this {
    for (const [index, text] of texts.entries()) this.text(text, x, y + index * leading, look)
    return this
  }

  /** Cells of one row, each at its x. */
  row(cells: readonly string[], xs: readonly number[], y: number, look: RunLook = {}): this {
    for (const [index, cell] of cells.entries()) if (cell !== '') this.text(cell, xs[index] ?? 0, y, look)
    return this
  }

  rule(x1: number, y1: number, x2: number, y2: number): this {
    this.rules.push({ x1, y1, x2, y2 })
    return this
  }

  grid(xs: readonly number[], ys: readonly number[]): this {
    for (const x of xs) this.rule(x, ys[0] ?? 0, x, ys.at(-1) ?? 0)
    for (const y of ys) this.rule(xs[0] ?? 0, y, xs.at(-1) ?? 0, y)
    return this
  }

  link(x: number, y: number, width: number, height: number, url: string): this {
    this.links.push({ x, y, width, height, url })
    return this
  }

  page(): PdfPage {
    return { number: this.number, width: 600, height: 800, runs: this.runs, rules: this.rules, links: this.links }
  }
}

/** Each page is written by its own function. */
export function markdownOf(...writers: readonly ((page: PageMaker) => unknown)[]): string {
  const pages = writers.map((write, index) => {
    const maker = new PageMaker(index + 1)
    write(maker)
    return maker.page()
  })
  return pagesToMarkdown(pages, [])
}

const FILLER = 'stone river paper cloud window garden candle market silver bridge'.split(' ')

/** Lines of prose without capitals, of about `characters` each, the same for the same `seed`; no line ends a sentence. */
export function proseLines(count: number, characters: number, seed = 0): string[] {
  let word = seed
  return Array.from({ length: count }, () => {
    let line = ''
    while (line.length < characters - 7) {
      word += 1
      line += `${line === '' ? '' : ' '}${FILLER[(word * 7 + seed) % FILLER.length] ?? ''}`
    }
    return line
  })
}
