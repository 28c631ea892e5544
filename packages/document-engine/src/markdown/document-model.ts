export const BOLD = 1
export const ITALIC = 2
export const STRIKE = 4

/** A piece of a line; `marks` is a sum of the constants above. */
export type Inline =
  | { readonly kind: 'text'; readonly text: string; readonly marks: number }
  | { readonly kind: 'code'; readonly text: string; readonly marks: number }
  /** Markdown already: a formula, a tag that Markdown lets through. */
  | { readonly kind: 'raw'; readonly text: string; readonly marks: number }
  | { readonly kind: 'image'; readonly alt: string; readonly url: string; readonly marks: number }
  | { readonly kind: 'link'; readonly url: string; readonly content: readonly Inline[]; readonly marks: number }
  | { readonly kind: 'break'; readonly marks: number }
  /** The box of a task list item. */
  | { readonly kind: 'task'; readonly isDone: boolean; readonly marks: number }

export type Block =
  | { readonly kind: 'paragraph'; readonly content: readonly Inline[] }
  | { readonly kind: 'heading'; readonly level: number; readonly content: readonly Inline[] }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'math'; readonly tex: string }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | ListBlock
  | TableBlock
  | { readonly kind: 'rule' }

export interface ListBlock {
  readonly kind: 'list'
  readonly isOrdered: boolean
  /** Number of the first item. */
  readonly start: number
  /** Grows while lists that continue it are read. */
  readonly items: ListItem[]
}

export interface ListItem {
  readonly task: 'none' | 'open' | 'done'
  readonly blocks: Block[]
}

export interface TableBlock {
  readonly kind: 'table'
  readonly caption: readonly Inline[]
  readonly rows: readonly TableRow[]
}

export interface TableRow {
  readonly isHeader: boolean
  readonly cells: readonly TableCell[]
}

export interface TableCell {
  readonly blocks: readonly Block[]
  readonly columns: number
  readonly rows: number
  readonly alignment: '' | 'left' | 'center' | 'right'
}
