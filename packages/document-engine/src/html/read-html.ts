import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import type { EngineInput, EngineLimits, EngineOutput } from '../model/document.js'
import { decodeText } from '../text/charset.js'
import { HtmlElement } from './html-node.js'
import { readTree } from './html-parser.js'
import { writeHtml } from './html-writer.js'
import { mainContent } from './main-content.js'
import { pageBaseUrl, pageMetadata } from './page-metadata.js'

/**
 * Reads a page: its metadata, and what it is there for as cleaned HTML and as Markdown, where the title of the page
 * stands first; both are '' when it holds no text at all.
 *
 * @throws EngineFault too_large
 */
export function readHtml(input: EngineInput, _limits: EngineLimits): EngineOutput {
  const tree = readTree(decodeText(input.bytes, input.contentType, { htmlMeta: true }))
  const baseUrl = pageBaseUrl(tree, input.baseUrl)
  const { title, body } = mainContent(tree)
  const html = writeHtml(body, baseUrl)
  const whole = new HtmlElement('main', new Map())
  whole.append(title)
  whole.append(body)
  return {
    kind: 'html',
    metadata: pageMetadata(tree, input.baseUrl, baseUrl),
    html,
    markdown: htmlToMarkdown(whole, { baseUrl }),
    pages: 1,
  }
}
