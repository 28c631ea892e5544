/** `node bench/documents/make-corpus.mjs <directory>`: writes every PDF of the corpus with its Markdown beside it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makePdf, PLANS } from './pdf/corpus.mjs'

const [directory] = process.argv.slice(2)
if (!directory) {
  console.error('usage: node bench/documents/make-corpus.mjs <directory>')
  process.exit(1)
}
mkdirSync(directory, { recursive: true })
for (const plan of PLANS) {
  const { name, bytes, markdown, blocks } = await makePdf(plan)
  writeFileSync(join(directory, `${name}.pdf`), bytes)
  writeFileSync(join(directory, `${name}.md`), markdown)
  writeFileSync(join(directory, `${name}.json`), `${JSON.stringify(blocks, null, 1)}\n`)
}
