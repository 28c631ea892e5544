import type { PdfPage } from './pdf-page.js'

/** In points; the largest page of the format has 14,400. Beyond it numbers are broken, and lose their decimals. */
const FURTHEST = 1_000_000
const LARGEST_SIZE = 10_000

/** The page without runs, rules and links that stand nowhere, have no size or no text. */
export function sanePage(page: PdfPage): PdfPage {
  return {
    ...page,
    height: isPlace(page.height) ? page.height : 0,
    runs: page.runs.filter(
      (run) =>
        isPlace(run.x, run.y, run.width) &&
        run.width >= 0 &&
        run.fontSize > 0.01 &&
        run.fontSize < LARGEST_SIZE &&
        run.text.trim() !== '',
    ),
    rules: page.rules.filter((rule) => isPlace(rule.x1, rule.x2, rule.y1, rule.y2)),
    links: page.links.filter((link) => isPlace(link.x, link.y, link.width, link.height)),
  }
}

function isPlace(...values: readonly number[]): boolean {
  return values.every((value) => Math.abs(value) <= FURTHEST)
}
