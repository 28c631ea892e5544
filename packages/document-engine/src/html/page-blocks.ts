import type { HtmlElement, HtmlText } from './html-node.js'

/** An element that starts a line of its own, and what lies in it. */
export interface Container {
  readonly element: HtmlElement
  readonly parent: Container | null
  /** From 0, of the body. */
  readonly depth: number
  /** Classes and id, as bits of `WORD_GROUPS`. */
  readonly groups: number
  /** From whoever looks, or from whoever listens. */
  readonly isHidden: boolean
  /** From whoever looks. */
  readonly isInvisible: boolean
  /** Containers and loose blocks directly in it. */
  parts: number
  controls: number
  images: number
  /** Of the blocks below, in characters. */
  textLength: number
  linkedLength: number
  /** Of the blocks below that read like prose. */
  proseLength: number
  blocks: number
}

/** A line or a paragraph: text between two places where a new line starts. */
export interface TextBlock {
  readonly container: Container
  readonly nodes: readonly HtmlText[]
  /** Pictures, frames and boxes to tick that stand in the text. */
  readonly media: readonly HtmlElement[]
  /** Blanks collapsed. */
  readonly text: string
  /** Of the text, in characters. */
  readonly linkedLength: number
  readonly strongLength: number
  readonly links: number
  /** Some of it at least, as is a container. */
  readonly isHidden: boolean
  readonly isInvisible: boolean
}

/** A picture or a rule that stands on its own. */
export interface LooseMedia {
  readonly element: HtmlElement
  readonly container: Container
  /** Index of the block that follows. */
  readonly before: number
}

export interface PageBlocks {
  readonly body: Container
  /** Outer ones before those in them; the body first. */
  readonly containers: readonly Container[]
  readonly blocks: readonly TextBlock[]
  readonly media: readonly LooseMedia[]
}
