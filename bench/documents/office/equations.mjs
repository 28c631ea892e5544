import { piece } from '../text/blocks.mjs'

const run = (text) => `<m:r><m:t>${text}</m:t></m:r>`
const part = (name, content) => `<m:${name}>${content}</m:${name}>`
const power = (base, exponent) => ({
  omml: part('sSup', part('e', run(base)) + part('sup', run(exponent))),
  tex: `${base}^{${exponent}}`,
})
const fraction = (over, under) => ({
  omml: part('f', part('num', over.omml) + part('den', under.omml)),
  tex: `\\frac{${over.tex}}{${under.tex}}`,
})
const sum = (sign, command, from, to, body) => ({
  omml: part(
    'nary',
    part('naryPr', `<m:chr m:val="${sign}"/>`) + part('sub', run(from)) + part('sup', run(to)) + part('e', body.omml),
  ),
  tex: `\\${command}_{${from}}^{${to}} ${body.tex}`,
})
const root = (body) => ({
  omml: part('rad', part('radPr', '<m:degHide m:val="1"/>') + part('deg', '') + part('e', body.omml)),
  tex: `\\sqrt{${body.tex}}`,
})
const signs = (omml, tex = omml) => ({ omml: run(omml), tex })
const row = (...parts) => ({ omml: parts.map(({ omml }) => omml).join(''), tex: parts.map(({ tex }) => tex).join('') })
const matrix = (cells) => ({
  omml: part(
    'd',
    part('dPr', '<m:begChr m:val="["/><m:endChr m:val="]"/>') +
      part('e', part('m', cells.map((line) => part('mr', line.map((cell) => part('e', run(cell))).join(''))).join(''))),
  ),
  tex: `\\begin{bmatrix} ${cells.map((line) => line.join(' & ')).join(' \\\\ ')} \\end{bmatrix}`,
})

const KINDS = [
  ({ a, b, n }) => row(power(a, '2'), signs('+'), power(b, n)),
  ({ a, b, n }) => fraction(row(signs(`${a}+`), power(b, n)), signs(n)),
  ({ a, n }) => sum('∑', 'sum', 'i=1', n, power(a, 'i')),
  ({ a, b }) => root(row(power(a, '2'), signs('+'), power(b, '2'))),
  ({ a, b, n }) =>
    matrix([
      [a, '0'],
      [n, b],
    ]),
  ({ a }) => row(signs(`${a}≤`, `${a}\\leq`), signs('α', '\\alpha')),
  ({ a, n }) => sum('∫', 'int', '0', n, fraction(signs('1'), power(a, '2'))),
]

/** An equation as {omml, tex}. */
export function someEquation(random) {
  const [a, b, n] = random.sample(['a', 'b', 'c', 'k', 'm', 'n', 'x', 'y', 'z'], 3)
  return random.pick(KINDS)({ a, b, n })
}

/** A paragraph of which an equation is the middle, or which is an equation. */
export function equationParagraph(random, prose, isDisplayed) {
  const equation = someEquation(random)
  if (isDisplayed) return { type: 'paragraph', content: [{ ...piece(`$$ ${equation.tex} $$`), equation, isDisplayed }] }
  const words = prose.item()
  return {
    type: 'paragraph',
    content: [
      piece(`${words}, so that `),
      { ...piece(`$${equation.tex}$`), equation },
      piece(` for each ${prose.noun()}.`),
    ],
  }
}

/** The equations of blocks, in TeX. */
export const equationsOf = (blocks) =>
  blocks.flatMap(({ content = [] }) => content.flatMap(({ equation }) => (equation ? [equation.tex] : [])))

const bare = (text) => text.replaceAll(/\s/g, '')

/** How many equations there are, and how many of them the Markdown has to the character, blanks aside. */
export function equationCounts(blocks, markdown) {
  let rest = bare(markdown)
  let matched = 0
  const equations = equationsOf(blocks)
  for (const tex of equations) {
    const formula = `$${bare(tex)}$`
    const at = rest.indexOf(formula)
    if (at === -1) continue
    matched += 1
    rest = rest.slice(0, at) + rest.slice(at + formula.length)
  }
  return { truth: equations.length, matched }
}
