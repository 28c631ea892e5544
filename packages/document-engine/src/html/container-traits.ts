import { WORD_GROUPS } from './class-words.js'
import type { HtmlElement } from './html-node.js'
import type { Container } from './page-blocks.js'

export const PLACES = ['article', 'main', 'header', 'footer', 'nav', 'aside', 'form', 'figure', 'dialog'] as const

export interface ContainerTraits {
  /** Bit n is set below an element that is `PLACES[n]` by its tag or role. */
  readonly places: number
  readonly isArticleBody: boolean
  /** Containers between this one and the nearest that has a word of `WORD_GROUPS[n]`; at most `NO_WORD`. */
  readonly distances: Uint8Array
}

export const NO_WORD = 20

const PLACE_BY_ROLE: ReadonlyMap<string, (typeof PLACES)[number]> = new Map([
  ['article', 'article'],
  ['main', 'main'],
  ['banner', 'header'],
  ['contentinfo', 'footer'],
  ['navigation', 'nav'],
  ['menu', 'nav'],
  ['menubar', 'nav'],
  ['complementary', 'aside'],
  ['dialog', 'dialog'],
  ['alertdialog', 'dialog'],
])
const ARTICLE_BODY = /articleBody|reviewBody|^text$/

/** Of every container, from what surrounds it. `containers` has outer ones before those in them. */
export function containerTraits(containers: readonly Container[]): ReadonlyMap<Container, ContainerTraits> {
  const traits = new Map<Container, ContainerTraits>()
  for (const container of containers) {
    const outer = container.parent === null ? undefined : traits.get(container.parent)
    traits.set(container, {
      places: (outer?.places ?? 0) | placesOf(container.element),
      isArticleBody: (outer?.isArticleBody ?? false) || ARTICLE_BODY.test(container.element.attribute('itemprop')),
      distances: distancesFrom(container.groups, outer?.distances),
    })
  }
  return traits
}

function placesOf(element: HtmlElement): number {
  let places = 0
  const byRole = PLACE_BY_ROLE.get(element.attribute('role'))
  for (const [index, place] of PLACES.entries()) {
    if (place === element.localName || place === byRole) places |= 1 << index
  }
  return element.attribute('aria-modal') === 'true' ? places | (1 << PLACES.indexOf('dialog')) : places
}

function distancesFrom(groups: number, outer: Uint8Array | undefined): Uint8Array {
  return Uint8Array.from(WORD_GROUPS, (_, index) => {
    if (((groups >> index) & 1) === 1) return 0
    return outer === undefined ? NO_WORD : Math.min(NO_WORD, (outer[index] ?? NO_WORD) + 1)
  })
}
