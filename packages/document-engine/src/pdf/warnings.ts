import type { EngineWarning, EngineWarningCode } from '../model/document.js'

/** What a page lacks that was read. */
export interface PageGaps {
  /** Whether it has pictures over most of it, and no text. */
  readonly isPicture: boolean
  /** Whether many of its characters are none that Unicode knows. */
  readonly isUnreadable: boolean
  readonly isUndrawn: boolean
  /** Pictures of some size without a description; by place, as letterheads come back on each page. */
  readonly pictures: readonly string[]
}

/** A picture at one place on so many pages is a part of the letterhead. */
const LETTERHEAD_PAGES = 3

/**
 * @param pages by number, what each page lacks; undefined where it cannot be read
 * @returns one warning for each code that applies
 */
export function pdfWarnings(pages: ReadonlyMap<number, PageGaps | undefined>): EngineWarning[] {
  const numbers = (test: (gaps: PageGaps | undefined) => boolean): number[] =>
    [...pages].flatMap(([number, gaps]) => (test(gaps) ? [number] : []))
  const pictures = droppedPictures(pages)
  const count = [...pictures.values()].reduce((sum, one) => sum + one, 0)
  return [
    ...warning(
      'pages_without_text',
      numbers((gaps) => gaps?.isPicture === true),
      (amount) => `${amount} without text: text in pictures is not read (no OCR).`,
    ),
    ...warning(
      'pages_unread',
      numbers((gaps) => gaps === undefined),
      (amount) => `${amount} cannot be read: the file is broken there.`,
    ),
    ...warning(
      'fonts_unreadable',
      numbers((gaps) => gaps?.isUnreadable === true),
      (amount) => `${amount} with text whose fonts do not say which characters their glyphs are.`,
    ),
    ...warning(
      'drawings_unread',
      numbers((gaps) => gaps?.isUndrawn === true),
      (amount) => `${amount} whose drawn lines are not read: tables may be missing.`,
    ),
    ...warning(
      'pictures_dropped',
      [...pictures.keys()],
      (amount) => `${counted(count, 'picture')} without a description on ${amount}.`,
    ),
  ]
}

function warning(
  code: EngineWarningCode,
  pages: readonly number[],
  message: (amount: string) => string,
): EngineWarning[] {
  return pages.length === 0 ? [] : [{ code, message: message(counted(pages.length, 'page')), pages }]
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Pictures by page, without those of the letterhead. */
function droppedPictures(pages: ReadonlyMap<number, PageGaps | undefined>): Map<number, number> {
  const pagesOf = new Map<string, number>()
  for (const gaps of pages.values()) {
    for (const place of new Set(gaps?.pictures)) pagesOf.set(place, (pagesOf.get(place) ?? 0) + 1)
  }
  const dropped = new Map<number, number>()
  for (const [number, gaps] of pages) {
    const own = (gaps?.pictures ?? []).filter((place) => (pagesOf.get(place) ?? 0) < LETTERHEAD_PAGES)
    if (own.length > 0) dropped.set(number, own.length)
  }
  return dropped
}
