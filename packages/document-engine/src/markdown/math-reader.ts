import { collapseBlanks } from './characters.js'
import { attributeOf, childrenOf, descendantsOf, type MarkupNode, tagOf, textOf, wholeText } from './markup-node.js'

const DEEPEST = 64

/** A formula as TeX: what its author wrote where the page still has it, otherwise made of the MathML. */
export function texOf(math: MarkupNode): string {
  for (const node of descendantsOf(math))
    if (tagOf(node) === 'annotation' && attributeOf(node, 'encoding').includes('tex')) return tidyTex(wholeText(node))
  return tidyTex(attributeOf(math, 'alttext') || convertRow(math, 0))
}

/** One line, without the wrapper that some renderers add. */
export function tidyTex(tex: string): string {
  const line = collapseBlanks(tex).trim()
  const wrapped = /^\{\\(?:displaystyle|textstyle)\s?(.*)\}$/.exec(line)
  return (wrapped?.[1] ?? line).trim()
}

/** TeX that is written out between `\(…\)`, `\[…\]` or dollars. */
export function delimitedTex(text: string): string {
  const match = /^\s*(?:\\\(([^]*)\\\)|\\\[([^]*)\\\]|\$\$([^]*)\$\$|\$([^]*)\$)\s*$/.exec(text)
  return tidyTex(match?.slice(1).join('') ?? '')
}

/** The MathML among the first `mostNodes` below a node. */
export function findMath(root: MarkupNode, mostNodes: number): MarkupNode | undefined {
  let nodes = 0
  for (const node of descendantsOf(root)) {
    if (tagOf(node) === 'math') return node
    nodes += 1
    if (nodes >= mostNodes) return undefined
  }
  return undefined
}

function convertRow(node: MarkupNode, depth: number): string {
  let tex = ''
  for (const child of childrenOf(node)) tex += convert(child, depth)
  return tex
}

function convert(node: MarkupNode, depth: number): string {
  const text = textOf(node)
  if (text !== undefined) return collapseBlanks(text).trim()
  if (depth > DEEPEST) return collapseBlanks(wholeText(node))
  const parts = [...childrenOf(node)].filter((child) => tagOf(child) !== '')
  const part = (index: number): string => {
    const child = parts[index]
    return child === undefined ? '' : convert(child, depth + 1)
  }
  switch (tagOf(node)) {
    case 'mfrac':
      return `\\frac{${part(0)}}{${part(1)}}`
    case 'msqrt':
      return `\\sqrt{${convertRow(node, depth + 1)}}`
    case 'mroot':
      return `\\sqrt[${part(1)}]{${part(0)}}`
    case 'msup':
    case 'mover':
      return `${part(0)}^{${part(1)}}`
    case 'msub':
    case 'munder':
      return `${part(0)}_{${part(1)}}`
    case 'msubsup':
    case 'munderover':
      return `${part(0)}_{${part(1)}}^{${part(2)}}`
    case 'mtext':
      return `\\text{${convertRow(node, depth + 1)}}`
    case 'mspace':
      return ' '
    case 'mtr':
      return `${parts.map((_, index) => part(index)).join(' & ')} \\\\ `
    case 'annotation':
    case 'annotation-xml':
      return ''
    default:
      return convertRow(node, depth + 1)
  }
}
