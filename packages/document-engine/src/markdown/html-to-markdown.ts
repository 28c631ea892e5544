import { writeBlocks } from './block-writer.js'
import { type MarkupNode } from './markup-node.js'
import { readMarkup } from './markup-reader.js'

interface MarkdownOptions {
  /** Absolute URL that relative links and pictures stand against; '' leaves them as they are. */
  readonly baseUrl: string
}

/**
 * Writes a document, an element or a fragment as GitHub-flavoured Markdown. Nothing is left out for its meaning: what is
 * no part of the document has to be gone before. The tree is not changed; the time taken grows with its size alone.
 *
 * @returns Markdown that ends with one line feed, or '' when there is nothing to show. Never throws.
 */
export function htmlToMarkdown(root: MarkupNode, options: MarkdownOptions): string {
  return writeBlocks(readMarkup(root, options.baseUrl))
}
