import {
  ACCENTS,
  ALPHABET_OF_VARIANT,
  environment,
  equationText,
  FUNCTION_NAMES,
  grouped,
  joined,
  MATRICES,
  TexRow,
  wordsTex,
} from './equation-text.js'
import { collapseBlanks } from './escape-markdown.js'
import { attributeOf, childrenOf, hasAttribute, type MarkupNode, tagOf, textOf, wholeText } from './markup-node.js'

const DEEPEST = 64

/** MathML (presentation) as TeX; what has no equivalent is kept as its text. */
export function mathmlTex(math: MarkupNode): string {
  return rowTex(math, 0)
}

type Structure = (element: MarkupNode, depth: number) => string

const STRUCTURES: ReadonlyMap<string, Structure> = new Map<string, Structure>([
  ['mi', identifier],
  ['mn', (element) => equationText(textIn(element))],
  ['mo', (element) => equationText(textIn(element))],
  ['mtext', words],
  ['ms', words],
  ['mspace', () => ' '],
  ['mfrac', fraction],
  ['msqrt', (element, depth) => `\\sqrt{${rowTex(element, depth)}}`],
  ['mroot', (element, depth) => `\\sqrt[${part(element, 1, depth)}]{${part(element, 0, depth)}}`],
  ['msub', (element, depth) => `${base(element, depth)}_{${part(element, 1, depth)}}`],
  ['msup', (element, depth) => `${base(element, depth)}^{${part(element, 1, depth)}}`],
  ['msubsup', (element, depth) => `${base(element, depth)}_{${part(element, 1, depth)}}^{${part(element, 2, depth)}}`],
  ['munder', (element, depth) => overOrUnder(element, depth, '_', 'underset')],
  ['mover', (element, depth) => overOrUnder(element, depth, '^', 'overset')],
  ['munderover', underOver],
  ['mmultiscripts', multipleScripts],
  ['mtable', (element, depth) => environment('matrix', tableRows(element, depth))],
  ['mfenced', fenced],
  ['menclose', enclosed],
  ['mphantom', (element, depth) => `\\phantom{${rowTex(element, depth)}}`],
  ['semantics', (element, depth) => part(element, 0, depth)],
  ['maction', (element, depth) => part(element, 0, depth)],
  ['annotation', () => ''],
  ['annotation-xml', () => ''],
])

function convert(node: MarkupNode, depth: number): string {
  const text = textOf(node)
  if (text !== undefined) return equationText(collapseBlanks(text).trim())
  if (depth > DEEPEST) return equationText(textIn(node))
  return STRUCTURES.get(tagOf(node))?.(node, depth + 1) ?? rowTex(node, depth + 1)
}

const textIn = (node: MarkupNode): string => collapseBlanks(wholeText(node)).trim()

const elementsOf = (node: MarkupNode): MarkupNode[] => [...childrenOf(node)].filter((child) => tagOf(child) !== '')

function part(element: MarkupNode, index: number, depth: number): string {
  const child = elementsOf(element)[index]
  return child === undefined ? '' : convert(child, depth).trim()
}

const base = (element: MarkupNode, depth: number): string => grouped(part(element, 0, depth))

/** Children one behind the other; a table between brackets is a matrix. */
function rowTex(element: MarkupNode, depth: number): string {
  const children = [...childrenOf(element)].filter((child) => tagOf(child) !== '' || textOf(child)?.trim() !== '')
  const row = new TexRow()
  for (let index = 0; index < children.length; index += 1) {
    const matrix = matrixAt(children, index, depth)
    if (matrix !== undefined) {
      row.add(matrix.tex)
      index += matrix.length - 1
      continue
    }
    const child = children[index]
    if (child !== undefined) row.add(convert(child, depth))
  }
  return row.finish()
}

/** An operator, a table and an operator that make a matrix, or the beginning of cases. */
function matrixAt(
  children: readonly MarkupNode[],
  index: number,
  depth: number,
): { readonly tex: string; readonly length: number } | undefined {
  const [opening, table, closing] = children.slice(index, index + 3)
  if (opening === undefined || tagOf(opening) !== 'mo') return undefined
  const inner = table && onlyTable(table)
  if (inner === undefined) return undefined
  const open = textIn(opening)
  const close = closing !== undefined && tagOf(closing) === 'mo' ? textIn(closing) : ''
  const name = MATRICES.get(open + close)
  if (name !== undefined) return { tex: environment(name, tableRows(inner, depth)), length: 3 }
  if (open === '{') return { tex: environment('cases', tableRows(inner, depth)), length: close === '' ? 2 : 3 }
  return undefined
}

/** The table that is all that an element holds. */
function onlyTable(element: MarkupNode): MarkupNode | undefined {
  let inner: MarkupNode | undefined = element
  for (let level = 0; inner !== undefined && tagOf(inner) !== 'mtable'; level += 1) {
    const [only, ...others]: MarkupNode[] = elementsOf(inner)
    const isWrapper: boolean = /^(?:mrow|mstyle|mpadded)$/.test(tagOf(inner)) && others.length === 0 && level < DEEPEST
    inner = isWrapper ? only : undefined
  }
  return inner
}

function identifier(element: MarkupNode): string {
  const name = textIn(element)
  if (FUNCTION_NAMES.has(name)) return `\\${name}`
  const tex = equationText(name)
  const variant = attributeOf(element, 'mathvariant')
  const alphabet = ALPHABET_OF_VARIANT.get(variant) ?? (/^[a-z]{2,}$/i.test(name) ? 'mathrm' : undefined)
  return alphabet === undefined ? tex : `\\${alphabet}{${tex}}`
}

function words(element: MarkupNode): string {
  const text = collapseBlanks(wholeText(element))
  return text.trim() === '' ? ' ' : `\\text{${wordsTex(text)}}`
}

function fraction(element: MarkupNode, depth: number): string {
  const [over, under] = [part(element, 0, depth), part(element, 1, depth)]
  if (/^0(?:\.0*)?(?:[a-z%]+)?$/.test(attributeOf(element, 'linethickness'))) return `{${over} \\atop ${under}}`
  return attributeOf(element, 'bevelled') === 'true'
    ? `${grouped(over)}/${grouped(under)}`
    : `\\frac{${over}}{${under}}`
}

/** Operators and names whose limits stand above and below them. */
const TAKES_LIMITS =
  /^\\(?:sum|prod|coprod|i*int|o+i*nt|big[a-z]+|lim|limsup|liminf|max|min|sup|inf|det|gcd|Pr|(?:over|under)brace\{.*\})$/

function overOrUnder(element: MarkupNode, depth: number, script: '_' | '^', command: string): string {
  const [content, edge] = [part(element, 0, depth), part(element, 1, depth)]
  const sign = elementsOf(element)[1]
  const accent = sign !== undefined && tagOf(sign) === 'mo' ? accentOf(textIn(sign), script) : undefined
  if (accent !== undefined) return `\\${accent}{${content}}`
  return TAKES_LIMITS.test(content) ? `${content}${script}{${edge}}` : `\\${command}{${edge}}{${content}}`
}

const LINES: ReadonlySet<string> = new Set(['_', '\u0332', '¯', '‾'])

/** `_` draws a line below, where an accent would stand above. */
function accentOf(sign: string, script: '_' | '^'): string | undefined {
  if (script === '^') return sign === '_' ? 'overline' : ACCENTS.get(sign)
  if (LINES.has(sign)) return 'underline'
  return sign === '⏟' ? 'underbrace' : undefined
}

function underOver(element: MarkupNode, depth: number): string {
  const [content, under, over] = [0, 1, 2].map((index) => part(element, index, depth))
  if (TAKES_LIMITS.test(content ?? '')) return `${content ?? ''}_{${under ?? ''}}^{${over ?? ''}}`
  return `\\overset{${over ?? ''}}{\\underset{${under ?? ''}}{${content ?? ''}}}`
}

/** Scripts in pairs behind the base, and behind `mprescripts` those in front of it; `none` is an empty one. */
function multipleScripts(element: MarkupNode, depth: number): string {
  const [first, ...scripts] = elementsOf(element)
  const border = scripts.findIndex((script) => tagOf(script) === 'mprescripts')
  const behind = border < 0 ? scripts : scripts.slice(0, border)
  const before = border < 0 ? [] : scripts.slice(border + 1)
  const content = first === undefined ? '' : grouped(convert(first, depth).trim())
  return joined(before.length === 0 ? '' : `{}${scriptPairs(before, depth)}`, content + scriptPairs(behind, depth))
}

function scriptPairs(scripts: readonly MarkupNode[], depth: number): string {
  let [below, above] = ['', '']
  for (const [index, script] of scripts.entries()) {
    const tex = convert(script, depth).trim()
    if (index % 2 === 0) below += tex
    else above += tex
  }
  return (below === '' ? '' : `_{${below}}`) + (above === '' ? '' : `^{${above}}`)
}

function tableRows(table: MarkupNode, depth: number): string[] {
  return elementsOf(table).map((row) =>
    cellsOf(row)
      .map((cell) => rowTex(cell, depth).trim())
      .join(' & '),
  )
}

/** Without the label of a row, which is the number of an equation. */
function cellsOf(row: MarkupNode): MarkupNode[] {
  const tag = tagOf(row)
  if (tag === 'mlabeledtr') return elementsOf(row).slice(1)
  return tag === 'mtr' ? elementsOf(row) : [row]
}

function fenced(element: MarkupNode, depth: number): string {
  const sign = (name: string, usual: string): string =>
    hasAttribute(element, name) ? attributeOf(element, name) : usual
  const [open, close] = [sign('open', '('), sign('close', ')')]
  const parts = elementsOf(element)
  const table = parts.length === 1 && parts[0] !== undefined ? onlyTable(parts[0]) : undefined
  const name = table === undefined ? undefined : MATRICES.get(open + close)
  if (table !== undefined && name !== undefined) return environment(name, tableRows(table, depth))
  const separator = equationText(sign('separators', ',').slice(0, 1))
  const content = parts.map((one) => convert(one, depth).trim()).join(separator)
  return joined(equationText(open), content, equationText(close))
}

function enclosed(element: MarkupNode, depth: number): string {
  const content = rowTex(element, depth)
  return /\b(?:box|roundedbox|circle)\b/.test(attributeOf(element, 'notation')) ? `\\boxed{${content}}` : content
}
