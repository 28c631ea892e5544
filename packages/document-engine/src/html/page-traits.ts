import { WORD_GROUPS, type WordGroup } from './class-words.js'
import { type ContainerTraits, containerTraits } from './container-traits.js'
import { type ContentScores, contentScores } from './content-score.js'
import type { HtmlTree } from './html-parser.js'
import { type LineTraits, lineTraits } from './line-traits.js'
import type { Container, PageBlocks } from './page-blocks.js'

/** All that is known of a page before its blocks are judged one by one. */
export interface PageTraits {
  readonly page: PageBlocks
  readonly lines: readonly LineTraits[]
  readonly containers: ReadonlyMap<Container, ContainerTraits>
  readonly scores: ContentScores
  /** The best container and all around it. */
  readonly aroundBest: ReadonlySet<Container>
  /** Indexes of the first and the last block in the best container. */
  readonly bestFrom: number
  readonly bestTo: number
  /** Index of the first block in an h1; -1 when there is none. */
  readonly titleAt: number
  readonly proseBlocks: number
  /** Of the prose, in containers named after comments or forums. */
  readonly commentShare: number
  readonly forumShare: number
  /** In characters. */
  readonly proseBeforeComments: number
  readonly articles: number
  /** What the page says of itself. */
  readonly saysArticle: boolean
  readonly hasArticleData: boolean
  readonly hasProductData: boolean
  readonly occurrences: ReadonlyMap<string, number>
}

const ARTICLE_DATA = /"(?:News|Blog|Opinion|Tech|Scholarly)?(?:Article|Posting)"/
const PRODUCT_DATA = /"@type"\s{0,9}:\s{0,9}"Product"/

export function pageTraits(tree: HtmlTree, page: PageBlocks): PageTraits {
  const lines = page.blocks.map(lineTraits)
  const scores = contentScores(page)
  const aroundBest = new Set(ancestorsOf(scores.best))
  const inBest = page.blocks.map(({ container }) => isWithin(container, scores.best))
  const isMarked = (pattern: RegExp): boolean => tree.jsonLd.some((text) => pattern.test(text))
  const traits = containerTraits(page.containers)
  return {
    page,
    lines,
    containers: traits,
    scores,
    aroundBest,
    bestFrom: Math.max(0, inBest.indexOf(true)),
    bestTo: Math.max(0, inBest.lastIndexOf(true)),
    titleAt: lines.findIndex(({ headingLevel }) => headingLevel === 1),
    proseBlocks: lines.filter(({ isProse }) => isProse).length,
    ...proseShares(page, lines, traits),
    articles: page.containers.filter(({ element, blocks }) => element.localName === 'article' && blocks > 0).length,
    saysArticle: tree.head.some(
      (element) => /^og:type$/i.test(element.attribute('property')) && /article/i.test(element.attribute('content')),
    ),
    hasArticleData: isMarked(ARTICLE_DATA),
    hasProductData: isMarked(PRODUCT_DATA),
    occurrences: occurrencesOf(page),
  }
}

function proseShares(
  page: PageBlocks,
  lines: readonly LineTraits[],
  traits: ReadonlyMap<Container, ContainerTraits>,
): Pick<PageTraits, 'commentShare' | 'forumShare' | 'proseBeforeComments'> {
  const isNamed = (container: Container, group: WordGroup): boolean => {
    let named: Container | null = container
    const distance = traits.get(container)?.distances[WORD_GROUPS.indexOf(group)] ?? 0
    for (let level = 0; level < distance && named !== null; level += 1) named = named.parent
    return named !== null && ((named.groups >> WORD_GROUPS.indexOf(group)) & 1) === 1
  }
  let [comments, forum, before] = [0, 0, 0]
  let haveCommentsBegun = false
  for (const [index, { container, text }] of page.blocks.entries()) {
    const isComment = isNamed(container, 'comments')
    haveCommentsBegun ||= isComment
    if (lines[index]?.isProse !== true) continue
    if (isComment) comments += text.length
    if (isNamed(container, 'forum')) forum += text.length
    if (!haveCommentsBegun) before += text.length
  }
  const prose = Math.max(1, page.body.proseLength)
  return { commentShare: comments / prose, forumShare: forum / prose, proseBeforeComments: before }
}

function occurrencesOf(page: PageBlocks): Map<string, number> {
  const occurrences = new Map<string, number>()
  for (const { text } of page.blocks) occurrences.set(text, (occurrences.get(text) ?? 0) + 1)
  return occurrences
}

/** The container itself and all around it, the innermost first. */
export function ancestorsOf(container: Container): readonly Container[] {
  const ancestors: Container[] = []
  for (let above: Container | null = container; above !== null; above = above.parent) ancestors.push(above)
  return ancestors
}

function isWithin(container: Container, outer: Container): boolean {
  let above: Container | null = container
  while (above !== null && above.depth > outer.depth) above = above.parent
  return above === outer
}
