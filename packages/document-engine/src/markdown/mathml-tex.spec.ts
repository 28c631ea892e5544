import { describe, expect, it } from '@jest/globals'
import { readTree } from '../html/html-parser.js'
import { mathmlTex } from './mathml-tex.js'

const texOf = (mathml: string): string => mathmlTex(readTree(`<math>${mathml}</math>`).body)

const ROW = '<mtr><mtd><mi>a</mi></mtd><mtd><mn>0</mn></mtd></mtr>'
const TABLE = `<mtable>${ROW}${ROW}</mtable>`

describe('MathML as TeX', () => {
  it.each([
    [
      'signs and names as commands',
      '<mi>α</mi><mo>≤</mo><mi>sin</mi><mi>x</mi><mi>rank</mi>',
      '\\alpha\\leq\\sin x\\mathrm{rank}',
    ],
    ['a fraction', '<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac>', '\\frac{a}{b+1}'],
    ['a fraction without a line', '<mfrac linethickness="0"><mi>n</mi><mi>k</mi></mfrac>', '{n \\atop k}'],
    ['roots', '<msqrt><mi>a</mi><mi>b</mi></msqrt><mroot><mi>x</mi><mn>3</mn></mroot>', '\\sqrt{ab}\\sqrt[3]{x}'],
    ['scripts on more than one sign', '<msup><mrow><mi>a</mi><mi>b</mi></mrow><mn>2</mn></msup>', '{ab}^{2}'],
    ['scripts below and above', '<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>', 'x_{i}^{2}'],
    [
      'scripts in front',
      '<mmultiscripts><mi>U</mi><mprescripts/><mn>92</mn><mn>238</mn></mmultiscripts>',
      '{}_{92}^{238}U',
    ],
    [
      'limits of a sum',
      '<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>i</mi>',
      '\\sum_{i=1}^{n}i',
    ],
    ['a limit', '<munder><mi>lim</mi><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow></munder>', '\\lim_{x\\to0}'],
    ['accents', '<mover><mi>x</mi><mo>⃗</mo></mover><mover><mi>y</mi><mo>^</mo></mover>', '\\vec{x}\\hat{y}'],
    ['what stands over a sign', '<mover><mo>=</mo><mtext>def</mtext></mover>', '\\overset{\\text{def}}{=}'],
    [
      'a line above and below',
      '<mover><mi>z</mi><mo>¯</mo></mover><munder><mi>z</mi><mo>_</mo></munder>',
      '\\bar{z}\\underline{z}',
    ],
    ['a matrix in its brackets', `<mo>(</mo>${TABLE}<mo>)</mo>`, '\\begin{pmatrix} a & 0 \\\\ a & 0 \\end{pmatrix}'],
    [
      'a matrix in fences',
      `<mfenced open="[" close="]"><mrow>${TABLE}</mrow></mfenced>`,
      '\\begin{bmatrix} a & 0 \\\\ a & 0 \\end{bmatrix}',
    ],
    ['cases', `<mi>f</mi><mo>=</mo><mo>{</mo>${TABLE}`, 'f=\\begin{cases} a & 0 \\\\ a & 0 \\end{cases}'],
    [
      'a table without the numbers of its rows',
      '<mtable><mlabeledtr><mtd>(1)</mtd><mtd><mi>a</mi></mtd></mlabeledtr></mtable>',
      '\\begin{matrix} a \\end{matrix}',
    ],
    ['fences with separators', '<mfenced separators=";"><mi>a</mi><mi>b</mi></mfenced>', '(a;b)'],
    ['words', '<mtext>if 5% </mtext><mi>x</mi>', '\\text{if 5\\% }x'],
    ['alphabets', '<mi mathvariant="double-struck">R</mi><mi mathvariant="bold">v</mi>', '\\mathbb{R}\\mathbf{v}'],
    ['the first form of several', '<semantics><mi>x</mi><annotation-xml><ci>y</ci></annotation-xml></semantics>', 'x'],
    [
      'a box, and what is not seen',
      '<menclose notation="box"><mi>a</mi></menclose><mphantom><mi>b</mi></mphantom>',
      '\\boxed{a}\\phantom{b}',
    ],
    ['elements of no known form as their text', '<mnew><mi>x</mi></mnew>', 'x'],
  ])('has %s', (_what, mathml, tex) => {
    expect(texOf(mathml)).toBe(tex)
  })

  it('is read at any depth, and keeps the text of what is too deep', () => {
    expect(texOf('<msqrt>'.repeat(100_000) + '<mi>x</mi>')).toMatch(/^(?:\\sqrt\{){1,200}x\}+$/)
  })
})
