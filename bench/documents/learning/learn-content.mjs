/**
 * Learns which blocks of a page are its content, and writes packages/document-engine/src/html/content-model.ts:
 *
 *   npm run build && DOCUMENT_CORPORA=<dir> node bench/documents/learning/learn-content.mjs
 *
 * From the pages of `<dir>/wcxb/dev` that are not in `test` as well, and of `<dir>/aeb`. The pages of `test` are never learned
 * from. What was learned is measured on `aeb` by leaving out a quarter at a time: `--without 0 --to <file>` to `--without 3`
 * (README.md).
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { FEATURES, subjectsOf } from '../../../packages/document-engine/dist/html/block-features.js'
import { readTree } from '../../../packages/document-engine/dist/html/html-parser.js'
import { pageTraits } from '../../../packages/document-engine/dist/html/page-traits.js'
import { textBlocks } from '../../../packages/document-engine/dist/html/text-blocks.js'
import { wordsOf } from '../scores/words.mjs'
import { boost } from './boosting.mjs'
import { labeller } from './labels.mjs'

const MODEL = fileURLToPath(new URL('../../../packages/document-engine/src/html/content-model.ts', import.meta.url))
/** The truth leaves the title out, which does not make it no content. */
const TITLE_WEIGHT = 0.05
const LEAST_WORDS = 50
/** There are few of them, and they are labelled with more care. */
const ARTICLE_WEIGHT = 4
const QUARTERS = 4
const { values: options } = parseArgs({
  options: { without: { type: 'string' }, to: { type: 'string', default: MODEL } },
})

const corpus = process.env.DOCUMENT_CORPORA ?? ''
const jsonOf = (path) => JSON.parse(readFileSync(path, 'utf8'))
const pagesOf = (part) => join(corpus, 'wcxb', part, 'html')
if (!existsSync(pagesOf('dev'))) throw new Error('DOCUMENT_CORPORA names no directory with wcxb/dev')

const judging = new Set(readdirSync(pagesOf('test')).map((name) => readFileSync(join(pagesOf('test'), name), 'base64')))
const rows = []
const labels = []
const weights = []
let pages = 0

for (const name of readdirSync(pagesOf('dev')).sort()) {
  const file = readFileSync(join(pagesOf('dev'), name))
  if (judging.has(file.toString('base64'))) continue
  const truthFile = join(corpus, 'wcxb', 'dev', 'ground-truth', name.replace('.html.gz', '.json'))
  addPage(gunzipSync(file).toString(), jsonOf(truthFile).ground_truth?.main_content ?? '', 1)
}
for (const [at, [name, { articleBody = '' }]] of Object.entries(
  jsonOf(join(corpus, 'aeb', 'ground-truth.json')),
).entries()) {
  if (at % QUARTERS === Number(options.without)) continue
  addPage(
    gunzipSync(readFileSync(join(corpus, 'aeb', 'html', `${name}.html.gz`))).toString(),
    articleBody,
    ARTICLE_WEIGHT,
  )
}

function addPage(html, truth, weight) {
  const tree = readTree(html)
  const page = textBlocks(tree.body)
  if (page.blocks.length === 0) return
  pages++
  const label = labeller(truth)
  const found = page.blocks.map(({ text }) => label(text))
  const truthWords = wordsOf(truth).length
  const pageWords = found.reduce((sum, { words }) => sum + words, 0)
  // Each page counts about the same, however long it is.
  const scale = Math.max(truthWords, Math.min(pageWords, 3 * truthWords), LEAST_WORDS)
  let hasTitle = false
  for (const subject of subjectsOf(pageTraits(tree, page))) {
    const { share, words } = found[subject.index]
    const isTitle = !hasTitle && subject.block.container.element.localName === 'h1'
    hasTitle ||= isTitle
    rows.push(FEATURES.map(([, value]) => value(subject)))
    labels.push(share)
    weights.push(Math.max(1e-9, weight * (words / scale) * (isTitle ? TITLE_WEIGHT : 1)))
  }
}

const short = (value, digits) => String(Number(value.toPrecision(digits))).replace(/^(-?)0\./, '$1.')
const textOf = (node) =>
  typeof node === 'number' ? short(node, 3) : `${node[0]}<${short(node[1], 5)} ${textOf(node[2])} ${textOf(node[3])}`

console.log(`${pages} pages, ${rows.length} blocks`)
const { base, trees } = boost(rows, labels, weights)
writeFileSync(
  options.to,
  `/**
 * What was learned about the blocks of ${pages} labelled pages: decision trees whose sum is the logarithm of the odds that a
 * block is content. A tree is written from its root: \`12<.5\` asks whether the feature with that number is below the
 * threshold; what follows is the tree for yes, then the tree for no. A number alone is what the tree adds.
 * Made by bench/documents/learning/learn-content.mjs; the names tell which features it was made for.
 */
export const MODEL_FEATURES: readonly string[] = [
${FEATURES.map(([name]) => `  '${name}',`).join('\n')}
]

export const BASE_LOGIT = ${short(base, 4)}

export const TREES: readonly string[] = [
${trees.map((tree) => `  '${textOf(tree)}',`).join('\n')}
]
`,
)
