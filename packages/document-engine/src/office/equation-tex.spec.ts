import { describe, expect, it } from '@jest/globals'
import { equationTex, type EquationTex } from './equation-tex.js'
import { parseXml } from './xml.js'

/** Reads an equation; elements are written without their prefix. */
function read(content: string): EquationTex {
  const root = parseXml(
    Buffer.from(`<m:oMath>${content.replaceAll(/<(\/?)(\w)/g, '<$1m:$2').replaceAll(' val=', ' m:val=')}</m:oMath>`),
  )
  if (root === undefined) throw new Error('no equation')
  return equationTex(root)
}
const tex = (content: string): string => read(content).tex
const r = (text: string, properties = ''): string => `<r>${properties && `<rPr>${properties}</rPr>`}<t>${text}</t></r>`
const e = (content: string): string => `<e>${content}</e>`

describe('an equation of Office as TeX', () => {
  it.each([
    ['a fraction', `<f><num>${r('a+1')}</num><den>${r('b')}</den></f>`, '\\frac{a+1}{b}'],
    ['a fraction on a line', `<f><fPr><type val="lin"/></fPr><num>${r('a')}</num><den>${r('bc')}</den></f>`, 'a/{bc}'],
    ['a power', `<sSup>${e(r('x'))}<sup>${r('2')}</sup></sSup>`, 'x^{2}'],
    ['an index of several signs', `<sSub>${e(r('ab'))}<sub>${r('i')}</sub></sSub>`, '{ab}_{i}'],
    ['both', `<sSubSup>${e(r('σ'))}<sub>${r('i')}</sub><sup>${r('2')}</sup></sSubSup>`, '\\sigma_{i}^{2}'],
    ['scripts in front', `<sPre><sub>${r('6')}</sub><sup>${r('14')}</sup>${e(r('C'))}</sPre>`, '{}_{6}^{14}C'],
    ['a root', `<rad><radPr><degHide val="1"/></radPr><deg/>${e(r('x'))}</rad>`, '\\sqrt{x}'],
    ['a cube root', `<rad><deg>${r('3')}</deg>${e(r('x'))}</rad>`, '\\sqrt[3]{x}'],
    [
      'a sum',
      `<nary><naryPr><chr val="∑"/></naryPr><sub>${r('i=1')}</sub><sup>${r('n')}</sup>${e(r('i'))}</nary>`,
      '\\sum_{i=1}^{n} i',
    ],
    [
      'an integral without limits',
      `<nary><naryPr><subHide val="1"/><supHide val="1"/></naryPr><sub/><sup/>${e(r('x'))}</nary>`,
      '\\int x',
    ],
    ['parentheses', `<d>${e(r('x'))}</d>`, '(x)'],
    ['a set', `<d><dPr><begChr val="{"/><endChr val="}"/></dPr>${e(r('x'))}${e(r('y'))}</d>`, '\\{x|y\\}'],
    [
      'parentheses around what is tall',
      `<d>${e(`<f><num>${r('a')}</num><den>${r('b')}</den></f>`)}</d>`,
      '\\left( \\frac{a}{b} \\right)',
    ],
    ['a power of parentheses', `<sSup>${e(`<d>${e(r('x+y'))}</d>`)}<sup>${r('2')}</sup></sSup>`, '(x+y)^{2}'],
    ['one delimiter', `<d><dPr><begChr val=""/><endChr val="|"/></dPr>${e(r('x'))}</d>`, '\\left. x \\right|'],
    [
      'a matrix',
      `<d><dPr><begChr val="["/><endChr val="]"/></dPr>${e(`<m><mPr/><mr>${e(r('a'))}${e(r('b'))}</mr><mr>${e(r('c'))}${e(r('d'))}</mr></m>`)}</d>`,
      '\\begin{bmatrix} a & b \\\\ c & d \\end{bmatrix}',
    ],
    [
      'a binomial',
      `<d>${e(`<f><fPr><type val="noBar"/></fPr><num>${r('n')}</num><den>${r('k')}</den></f>`)}</d>`,
      '\\binom{n}{k}',
    ],
    [
      'cases',
      `<d><dPr><begChr val="{"/><endChr val=""/></dPr>${e(`<eqArr>${e(r('x&amp;=1'))}${e(r('y&amp;=2'))}</eqArr>`)}</d>`,
      '\\begin{cases} x & =1 \\\\ y & =2 \\end{cases}',
    ],
    ['an array', `<eqArr>${e(r('a'))}${e(r('b'))}</eqArr>`, '\\begin{aligned} a \\\\ b \\end{aligned}'],
    ['a function', `<func><fName>${r('sin', '<sty val="p"/>')}</fName>${e(r('x'))}</func>`, '\\sin x'],
    [
      'a limit',
      `<func><fName><limLow>${e(r('lim'))}<lim>${r('x→0')}</lim></limLow></fName>${e(r('f'))}</func>`,
      '\\lim_{x\\to0}f',
    ],
    ['a hat', `<acc>${e(r('x'))}</acc>`, '\\hat{x}'],
    ['a vector', `<acc><accPr><chr val="&#x20d7;"/></accPr>${e(r('v'))}</acc>`, '\\vec{v}'],
    [
      'bars',
      `<bar><barPr><pos val="top"/></barPr>${e(r('x'))}</bar><bar>${e(r('y'))}</bar>`,
      '\\overline{x}\\underline{y}',
    ],
    [
      'a brace with its label',
      `<limLow>${e(`<groupChr>${e(r('x'))}</groupChr>`)}<lim>${r('n')}</lim></limLow>`,
      '\\underbrace{x}_{n}',
    ],
    ['a sign above', `<limUpp>${e(r('='))}<lim>${r('!')}</lim></limUpp>`, '\\overset{!}{=}'],
    ['a box', `<borderBox>${e(r('x'))}</borderBox><box>${e(r('y'))}</box>`, '\\boxed{x}y'],
    ['what is not seen', `<phant><phantPr><show val="0"/></phantPr>${e(r('x'))}</phant>`, '\\phantom{x}'],
    ['words', r('if 50% of ', '<nor/>') + r('x'), '\\text{if 50\\% of }x'],
    ['letters of mathematics', r('𝑥∈ℝ,𝐀≤αb'), 'x\\in\\mathbb{R},\\mathbf{A}\\leq\\alpha b'],
    ['letters of other scripts', r('速度=v'), '\\text{速度}=v'],
    ['alphabets', r('L', '<scr val="script"/>') + r('v', '<sty val="b"/>'), '\\mathcal{L}\\mathbf{v}'],
  ])('has %s', (_name, content, expected) => {
    expect(read(content)).toEqual({ tex: expected, isWhole: true })
  })

  it('keeps the text of what it does not know, and says so', () => {
    expect(read(`<novelty>${e(r('x'))}</novelty>`)).toEqual({ tex: 'x', isWhole: false })
    expect(tex(`<f><num>${r('1')}</num></f>`)).toBe('\\frac{1}{}')
  })
})
