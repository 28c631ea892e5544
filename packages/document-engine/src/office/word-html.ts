import { parseHTML } from 'linkedom'
import { childrenOf, descendantsOf, type MarkupNode } from '../markdown/markup-node.js'
import { DISPLAYED_EQUATION, EQUATION, ITEM_NUMBER, MARK_END } from './word-part.js'

/** The part of linkedom's DOM that is used here; the project is compiled without DOM types. */
export interface OfficeElement extends MarkupNode {
  readonly textContent: string
  readonly parentElement: OfficeElement | null
  readonly children: readonly OfficeElement[]
  readonly childNodes: readonly OfficeElement[]
  readonly nextElementSibling: OfficeElement | null
  getAttribute(name: string): string | null
  setAttribute(name: string, value: string): void
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

/** Parses HTML as the body of a document. */
export function parseOfficeHtml(html: string): OfficeDocument {
  const window = parseHTML(`<!doctype html><html><body>${html}</body></html>`) as unknown as {
    document: OfficeDocument
  }
  return window.document
}

const MARKS = new RegExp(`([${EQUATION}${DISPLAYED_EQUATION}${ITEM_NUMBER}])(\\d{1,9})${MARK_END}`)

/** Replaces the marks of equations by formulas, and those of numbers by the first number of their list. */
export function placeMarks(document: OfficeDocument, equations: readonly string[]): void {
  for (const text of [...descendantsOf(document.body as MarkupNode)] as OfficeElement[]) {
    const parts = text.nodeType === 3 ? (text.data ?? '').split(MARKS) : []
    if (parts.length < 2) continue
    const nodes: (OfficeElement | string)[] = [parts[0] ?? '']
    for (let index = 1; index < parts.length; index += 3) {
      const [kind, number, words] = [parts[index], parts[index + 1] ?? '', parts[index + 2] ?? '']
      if (kind === ITEM_NUMBER) numberList(text, number)
      else nodes.push(formula(document, equations[Number(number)] ?? '', kind === DISPLAYED_EQUATION))
      nodes.push(words)
    }
    for (const node of nodes) if (node !== '') text.before(node)
    text.remove()
  }
}

/** The form that MathJax keeps formulas in. */
function formula(document: OfficeDocument, tex: string, isDisplayed: boolean): OfficeElement {
  const script = document.createElement('script')
  script.setAttribute('type', isDisplayed ? 'math/tex; mode=display' : 'math/tex')
  script.append(tex)
  return script
}

/** Most levels between the text of an item and the item. */
const MOST_LEVELS = 8

function numberList(text: OfficeElement, number: string): void {
  let element = text.parentElement
  for (let level = 0; level < MOST_LEVELS && element !== null && element.localName !== 'li'; level += 1) {
    element = element.parentElement
  }
  const list = element?.parentElement
  if (element?.localName !== 'li' || list?.localName !== 'ol' || list.firstChild !== element) return
  if (number !== '1') list.setAttribute('start', number)
}

/** A Word document says seldom which row is the header: the first becomes it, unless the table only lays out text. */
export function markHeaders(document: OfficeDocument): void {
  for (const table of [...document.querySelectorAll('table')]) {
    const rows = rowsOf(table)
    const [first] = rows
    if (first === undefined || rows.every((row) => row.children.length < 2)) continue
    const cells = rows.flatMap((row) => [...row.children])
    const isLayout =
      cells.some((cell) => cell.children.some(({ localName }) => /^h[1-6]$/.test(localName ?? ''))) ||
      (rows.length === 1 && cells.some((cell) => cell.children.length > 1))
    if (!isLayout) for (const cell of [...first.children]) if (cell.localName === 'td') renamed(document, cell, 'th')
  }
}

function rowsOf(table: OfficeElement): OfficeElement[] {
  const groups = table.children.filter(({ localName }) => localName !== 'tr')
  return [table, ...groups].flatMap((group) => group.children.filter(({ localName }) => localName === 'tr'))
}

function renamed(document: OfficeDocument, element: OfficeElement, name: string): OfficeElement {
  const other = document.createElement(name)
  for (const attribute of ['colspan', 'rowspan']) {
    const value = element.getAttribute(attribute)
    if (value !== null) other.setAttribute(attribute, value)
  }
  for (const child of [...element.childNodes]) other.append(child)
  element.replaceWith(other)
  return other
}

/** A checkbox in front of the text of a paragraph or an item makes it a task; others become characters. */
export function replaceCheckboxes(document: OfficeDocument): void {
  const boxes = [...document.querySelectorAll('input')]
  const counts = new Map<OfficeElement | null, number>()
  for (const { parentElement } of boxes) counts.set(parentElement, (counts.get(parentElement) ?? 0) + 1)
  for (const box of boxes) {
    const { parentElement: line } = box
    const isTask = line !== null && counts.get(line) === 1 && leads(box, line) && line.textContent.trim() !== ''
    if (isTask && line.localName === 'li') continue
    if (isTask && line.localName === 'p' && /^(?:body|li)$/.test(line.parentElement?.localName ?? ''))
      makeTask(document, line)
    else box.replaceWith(box.hasAttribute('checked') ? '☒' : '☐')
  }
}

const BOX = /^\s*([☐☑☒])\s/

/** Boxes drawn by a character in front of items become checkboxes. */
export function markTypedBoxes(document: OfficeDocument): void {
  for (const item of [...document.querySelectorAll('li')]) {
    const holder = item.firstChild?.localName === 'p' ? item.firstChild : item
    const text = holder.firstChild as OfficeElement | null
    const box = text?.nodeType === 3 ? BOX.exec(text.data ?? '') : null
    if (text === null || box === null) continue
    const input = document.createElement('input')
    input.setAttribute('type', 'checkbox')
    if (box[1] !== '☐') input.setAttribute('checked', '')
    text.before(input, (text.data ?? '').slice(box[0].length))
    text.remove()
  }
}

/** Whether no text stands before a box in its line. */
function leads(box: OfficeElement, line: OfficeElement): boolean {
  for (const node of childrenOf(line as MarkupNode)) {
    if (node === box) return true
    if ((node as OfficeElement).textContent.trim() !== '') return false
  }
  return false
}

function makeTask(document: OfficeDocument, paragraph: OfficeElement): void {
  const list = document.createElement('ul')
  const item = document.createElement('li')
  list.append(item)
  paragraph.before(list)
  item.append(paragraph)
}

/** Part of the text beyond which a font of fixed pitch is the typewriter's, and not that of code. */
const TYPED_SHARE = 0.5

/** A document that is typed throughout has paragraphs instead of code. */
export function replaceTyped(document: OfficeDocument): void {
  const blocks = [...document.querySelectorAll('pre.typed')]
  const typed = blocks.reduce((sum, { textContent }) => sum + textContent.length, 0)
  if (typed <= document.body.textContent.length * TYPED_SHARE) return
  for (const block of blocks) {
    for (const line of block.textContent.split('\n')) {
      const paragraph = document.createElement('p')
      paragraph.append(line)
      block.before(paragraph)
    }
    block.remove()
  }
}
