import { WORD_GROUPS } from './class-words.js'
import type { Container, TextBlock } from './page-blocks.js'
import { ancestorsOf, type PageTraits } from './page-traits.js'

/** So much long text in sight, and such a share of what is hidden: the page does not wait for a script to show it. */
const LONG_BLOCK = 100
const LEAST_SEEN = 500
const LEAST_SEEN_SHARE = 0.2
/** Nor does one that shows so many times the text that it keeps from sight, however little that is. */
const MOSTLY_SEEN = 2
/** Parts that a click shows, and that are hidden until then. */
const PANEL = /tab|panel|accord|collaps|toggle|expand|read-?more|show-?more|spoiler|faq|answer/i
const LEAST_ARTICLE_LENGTH = 300
const MOST_FORUM_SHARE = 0.3
const COMMENTS = 1 << WORD_GROUPS.indexOf('comments')

/** Blocks that are no content whatever their odds: hidden ones, and comments below what says that it is an article. */
export function excludedBlocks(traits: PageTraits, odds: Float64Array): readonly boolean[] {
  const { blocks } = traits.page
  const isHiding = hidesOnPurpose(traits)
  const hasSmallSecrets = isMostlySeen(traits)
  const isComment = commentsOf(traits, odds)
  const panels = new Map<Container, boolean>()
  const isInPanel = ({ container }: TextBlock): boolean => {
    const known = panels.get(container) ?? ancestorsOf(container).some(isPanel)
    panels.set(container, known)
    return known
  }
  return blocks.map((block, index) => {
    const isLeftOut = (isHiding && block.isHidden) || (hasSmallSecrets && block.isInvisible)
    return isComment[index] === true || (isLeftOut && !isInPanel(block))
  })
}

function hidesOnPurpose({ page }: PageTraits): boolean {
  let [seen, hidden] = [0, 0]
  for (const { isHidden, text } of page.blocks) {
    if (text.length < LONG_BLOCK) continue
    if (isHidden) hidden += text.length
    else seen += text.length
  }
  return seen >= LEAST_SEEN && seen >= hidden * LEAST_SEEN_SHARE
}

function isMostlySeen({ page }: PageTraits): boolean {
  let [seen, invisible] = [0, 0]
  for (const { isInvisible, text } of page.blocks) {
    if (isInvisible) invisible += text.length
    else seen += text.length
  }
  return seen >= invisible * MOSTLY_SEEN
}

function isPanel({ element }: Container): boolean {
  return PANEL.test(`${element.attribute('class')} ${element.attribute('id')} ${element.attribute('role')}`)
}

/** None where the comments may be what the page is there for. */
function commentsOf(traits: PageTraits, odds: Float64Array): readonly boolean[] {
  const { blocks } = traits.page
  const isArticle = (traits.saysArticle || traits.hasArticleData) && traits.forumShare < MOST_FORUM_SHARE
  if (!isArticle) return []
  const isComment = blocks.map(({ container }) => {
    return ancestorsOf(container).some(({ groups }) => (groups & COMMENTS) !== 0)
  })
  const article = blocks.filter((_, index) => isComment[index] !== true && (odds[index] ?? 0) > 0)
  const length = article.reduce((sum, { text }) => sum + text.length, 0)
  return length > LEAST_ARTICLE_LENGTH && isComment[0] !== true ? isComment : []
}
