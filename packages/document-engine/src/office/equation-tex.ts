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
} from '../markdown/equation-text.js'
import { childElements, descendant, textOf, type XmlElement } from './xml.js'

export interface EquationTex {
  readonly tex: string
  /** Whether all of it is TeX; a part without an equivalent is kept as its text. */
  readonly isWhole: boolean
}

/** An equation of Office (OMML, ECMA-376 part 1, 22.1) as TeX: `oMath`, or one `oMath` of an `oMathPara`. */
export function equationTex(equation: XmlElement): EquationTex {
  const writer = new EquationWriter()
  const tex = writer.row(equation)
  return { tex, isWhole: writer.isWhole }
}

type Structure = (writer: EquationWriter, element: XmlElement) => string

class EquationWriter {
  isWhole = true
  /** Lines of an equation array are aligned at `&`. */
  private isAligned = false

  row(element: XmlElement | undefined): string {
    const row = new TexRow()
    for (const child of childElements(element)) row.add(this.write(child))
    return row.finish()
  }

  /** The content of the child with that name. */
  part(element: XmlElement, name: string): string {
    return this.row(descendant(element, name)).trim()
  }

  aligned(write: () => string): string {
    const outer = this.isAligned
    this.isAligned = true
    const tex = write()
    this.isAligned = outer
    return tex
  }

  text(text: string): string {
    return equationText(text, this.isAligned)
  }

  private write(element: XmlElement): string {
    const { name } = element
    if (name.endsWith('Pr') || name === 'del' || name === 'moveFrom') return ''
    if (name === 'r') return runTex(this, element)
    const structure = STRUCTURES.get(name)
    if (structure !== undefined) return structure(this, element)
    if (CONTAINERS.has(name)) return this.row(element)
    const text = textOf(element)
    if (text.trim() !== '') this.isWhole = false
    return this.text(text)
  }
}

/** Elements without a form of their own; those of Word mark changes and places. */
const CONTAINERS: ReadonlySet<string> = new Set(
  'oMath e num den sub sup deg fName lim box ins moveTo smartTag sdt sdtContent hyperlink bookmarkStart bookmarkEnd'.split(
    ' ',
  ),
)

const STRUCTURES: ReadonlyMap<string, Structure> = new Map<string, Structure>([
  ['f', fraction],
  ['sSup', (writer, element) => `${base(writer, element)}^{${writer.part(element, 'sup')}}`],
  ['sSub', (writer, element) => `${base(writer, element)}_{${writer.part(element, 'sub')}}`],
  [
    'sSubSup',
    (writer, element) => `${base(writer, element)}_{${writer.part(element, 'sub')}}^{${writer.part(element, 'sup')}}`,
  ],
  [
    'sPre',
    (writer, element) =>
      joined(`{}_{${writer.part(element, 'sub')}}^{${writer.part(element, 'sup')}}`, writer.part(element, 'e')),
  ],
  ['rad', radical],
  ['nary', largeOperator],
  ['d', delimited],
  ['m', (writer, element) => environment('matrix', matrixRows(writer, element))],
  ['eqArr', (writer, element) => environment('aligned', arrayRows(writer, element))],
  ['func', (writer, element) => joined(writer.part(element, 'fName'), writer.part(element, 'e'))],
  ['acc', (writer, element) => overOrUnder(writer, element, value(element, 'chr') ?? '\u0302', 'top')],
  ['bar', barred],
  [
    'groupChr',
    (writer, element) => overOrUnder(writer, element, value(element, 'chr') ?? '⏟', value(element, 'pos') ?? 'bot'),
  ],
  ['limLow', (writer, element) => limit(writer, element, '_', 'underset')],
  ['limUpp', (writer, element) => limit(writer, element, '^', 'overset')],
  ['borderBox', (writer, element) => `\\boxed{${writer.part(element, 'e')}}`],
  [
    'phant',
    (writer, element) =>
      isOff(element, 'show') ? `\\phantom{${writer.part(element, 'e')}}` : writer.part(element, 'e'),
  ],
])

function fraction(writer: EquationWriter, element: XmlElement): string {
  const [over, under] = [writer.part(element, 'num'), writer.part(element, 'den')]
  const type = value(element, 'type')
  if (type === 'noBar') return `{${over} \\atop ${under}}`
  return type === 'lin' || type === 'skw' ? `${grouped(over)}/${grouped(under)}` : `\\frac{${over}}{${under}}`
}

function radical(writer: EquationWriter, element: XmlElement): string {
  const degree = isOn(element, 'degHide') ? '' : writer.part(element, 'deg')
  return `\\sqrt${degree === '' ? '' : `[${degree}]`}{${writer.part(element, 'e')}}`
}

function largeOperator(writer: EquationWriter, element: XmlElement): string {
  const sign = value(element, 'chr') ?? '∫'
  const [under, over] = [
    isOn(element, 'subHide') ? '' : writer.part(element, 'sub'),
    isOn(element, 'supHide') ? '' : writer.part(element, 'sup'),
  ]
  const limits = (under === '' ? '' : `_{${under}}`) + (over === '' ? '' : `^{${over}}`)
  return joined(`${writer.text(sign)}${limits} `, writer.part(element, 'e')).trimEnd()
}

function delimited(writer: EquationWriter, element: XmlElement): string {
  const [open, close] = [value(element, 'begChr') ?? '(', value(element, 'endChr') ?? ')']
  const parts = childElements(element, 'e')
  const [only, ...others] = childElements(parts[0]).filter(({ name }) => !name.endsWith('Pr'))
  if (parts.length === 1 && only !== undefined && others.length === 0) {
    const matrix = MATRICES.get(open + close)
    if (only.name === 'm' && matrix !== undefined) return environment(matrix, matrixRows(writer, only))
    if (open === '{' && close === '' && only.name === 'eqArr') return environment('cases', arrayRows(writer, only))
    if (open === '{' && close === '' && only.name === 'm') return environment('cases', matrixRows(writer, only))
    if (only.name === 'f' && open + close === '()' && value(only, 'type') === 'noBar') {
      return `\\binom{${writer.part(only, 'num')}}{${writer.part(only, 'den')}}`
    }
  }
  const separator = value(element, 'sepChr') ?? '|'
  const content = parts.map((part) => writer.row(part).trim()).join(separator === ',' ? ', ' : writer.text(separator))
  // Delimiters grow with what is tall.
  if (open !== '' && close !== '' && !TALL.test(content)) return writer.text(open) + content + writer.text(close)
  return `\\left${delimiter(writer, open)} ${content} \\right${delimiter(writer, close)}`
}

const TALL = /\\(?:d?frac|sum|prod|coprod|i*int|oint|big|begin|sqrt|over|under|left|binom)|[_^]/

/** A delimiter of TeX; an absent one is a dot. */
function delimiter(writer: EquationWriter, character: string): string {
  return character === '' ? '.' : writer.text(character)
}

function matrixRows(writer: EquationWriter, element: XmlElement): string[] {
  return childElements(element, 'mr').map((row) =>
    childElements(row, 'e')
      .map((cell) => writer.row(cell).trim())
      .join(' & '),
  )
}

/** Every second `&` of Word is a place for space, the others align. */
function arrayRows(writer: EquationWriter, element: XmlElement): string[] {
  return childElements(element, 'e').map((row) => writer.aligned(() => writer.row(row).trim()))
}

function barred(writer: EquationWriter, element: XmlElement): string {
  return `${value(element, 'pos') === 'top' ? '\\overline' : '\\underline'}{${writer.part(element, 'e')}}`
}

function overOrUnder(writer: EquationWriter, element: XmlElement, character: string, position: string): string {
  const content = writer.part(element, 'e')
  const command = ACCENTS.get(character)
  if (command !== undefined) return `\\${command}{${content}}`
  return `\\${position === 'top' ? 'overset' : 'underset'}{${writer.text(character)}}{${content}}`
}

function limit(writer: EquationWriter, element: XmlElement, script: '_' | '^', command: string): string {
  const [content, edge] = [writer.part(element, 'e'), writer.part(element, 'lim')]
  const takesLimits = /^\\(?:(?:over|under)brace\{|[a-z]{1,12}$)/i.test(content)
  return takesLimits ? `${content}${script}{${edge}}` : `\\${command}{${edge}}{${content}}`
}

/** What a script is put on; more than one sign needs braces. */
function base(writer: EquationWriter, element: XmlElement): string {
  return grouped(writer.part(element, 'e'))
}

function runTex(writer: EquationWriter, run: XmlElement): string {
  const text = childElements(run, 't').map(textOf).join('')
  if (text === '') return ''
  const properties = childElements(run, 'rPr')
  const setting = (name: string): XmlElement | undefined =>
    properties.map((one) => descendant(one, name)).find((one) => one !== undefined)
  const nor = setting('nor')
  if (nor !== undefined && !isFalse(attribute(nor))) return `\\text{${wordsTex(text)}}`
  const name = text.trim()
  if (FUNCTION_NAMES.has(name)) return `\\${name}${text.endsWith(' ') ? ' ' : ''}`
  const alphabet =
    ALPHABET_OF_VARIANT.get(attribute(setting('scr')) ?? '') ?? styleAlphabet(attribute(setting('sty')), name)
  const tex = writer.text(text)
  return alphabet === undefined ? tex : `\\${alphabet}{${tex}}`
}

/** Alphabet of a style: upright letters (`p`) are a name if there are several. */
function styleAlphabet(style: string | undefined, text: string): string | undefined {
  if (style === 'b') return 'mathbf'
  if (style === 'bi') return 'boldsymbol'
  return style === 'p' && /^[a-z]{2,}$/i.test(text) ? 'mathrm' : undefined
}

/** Value of a property of a structure, from the child whose name ends with `Pr`. */
function value(element: XmlElement, name: string): string | undefined {
  const properties = descendant(element, `${element.name}Pr`)
  const property = descendant(properties, name)
  return property === undefined ? undefined : (attribute(property) ?? '')
}

function attribute(element: XmlElement | undefined): string | undefined {
  return element?.attributes['m:val'] ?? element?.attributes['w:val'] ?? element?.attributes.val
}

const isFalse = (text: string | undefined): boolean => /^(?:0|off|false)$/.test(text ?? '')
const isOff = (element: XmlElement, name: string): boolean => isFalse(value(element, name))

/** A property without a value is on. */
function isOn(element: XmlElement, name: string): boolean {
  const text = value(element, name)
  return text !== undefined && !isFalse(text)
}
