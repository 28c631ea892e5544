import { parseHTML } from 'linkedom'
import type { MarkupNode } from '../markdown/markup-node.js'

/** As much of linkedom's DOM as is used here: the project is compiled without the types of browsers. */
export interface OfficeElement extends MarkupNode {
  readonly textContent: string
  readonly parentElement: OfficeElement | null
  readonly children: readonly OfficeElement[]
  readonly childNodes: readonly OfficeElement[]
  getAttribute(name: string): string | null
  hasAttribute(name: string): boolean
  querySelectorAll(selector: string): Iterable<OfficeElement>
  append(...nodes: (OfficeElement | string)[]): void
  before(...nodes: (OfficeElement | string)[]): void
  replaceWith(...nodes: (OfficeElement | string)[]): void
  remove(): void
}

export interface OfficeDocument {
  readonly body: OfficeElement
  createElement(name: string): OfficeElement
  querySelectorAll(selector: string): Iterable<OfficeElement>
}

/** The document around a piece of HTML that stands in its body. */
export function parseOfficeHtml(html: string): OfficeDocument {
  const window = parseHTML(`<!doctype html><html><body>${html}</body></html>`) as unknown as {
    document: OfficeDocument
  }
  return window.document
}
