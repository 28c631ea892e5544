import { readTree } from '@multi-model-gateway/document-engine/html/html-parser.js'
import { pageTraits, type PageTraits } from '@multi-model-gateway/document-engine/html/page-traits.js'
import { textBlocks } from '@multi-model-gateway/document-engine/html/text-blocks.js'

/** What is known of a page before its blocks are judged. */
export function traitsOf(html: string): PageTraits {
  const tree = readTree(html)
  return pageTraits(tree, textBlocks(tree.body))
}

/** The texts of the blocks that are marked. */
export const markedTexts = ({ page }: PageTraits, isMarked: readonly boolean[]): string[] =>
  page.blocks.filter((_, index) => isMarked[index] === true).map(({ text }) => text)
