import { BlockReader } from './block-reader.js'
import type { HtmlElement } from './html-node.js'
import type { Container, PageBlocks, TextBlock } from './page-blocks.js'

const PROSE_LENGTH = 100
const PROSE_LINKED_SHARE = 0.4

export function isProse(block: TextBlock): boolean {
  return block.text.length > PROSE_LENGTH && block.linkedLength < block.text.length * PROSE_LINKED_SHARE
}

/** Takes a page apart into blocks, in document order, and adds up what lies in each container. */
export function textBlocks(body: HtmlElement): PageBlocks {
  const page = new BlockReader(body).read()
  for (const block of page.blocks) {
    const prose = isProse(block) ? block.text.length : 0
    for (let container: Container | null = block.container; container !== null; container = container.parent) {
      container.textLength += block.text.length
      container.linkedLength += block.linkedLength
      container.proseLength += prose
      container.blocks += 1
    }
  }
  return page
}
