import { code, figure, heading, item, list, paragraph, piece, table } from './blocks.mjs'
import { FarEastProse } from './far-east.mjs'
import { Prose } from './prose.mjs'
import { Random } from './random.mjs'
import { PEOPLE, TOPICS } from './vocabulary.mjs'

/** An address that stands in the text as it is and leads nowhere. */
const bareAddress = (words, at) =>
  paragraph([...words.slice(0, at), '(see https://www.example.org/notes)', ...words.slice(at)].join(' '))

const isPlain = (word) => /^[\p{L}-]+$/u.test(word)

/** Marks a few words of a paragraph: never such as have a mark of punctuation beside them. */
function markedParagraph(random, prose, withLinks) {
  const words = prose.paragraph(random.integer(3, 7)).split(' ')
  const starts = words.flatMap((word, at) => (at > 2 && isPlain(word) && isPlain(words[at + 1] ?? '') ? [at] : []))
  const at = random.pick(starts)
  const marks = [{ bold: true }, { italic: true }, { code: true }]
  if (withLinks && random.chance(0.2)) return bareAddress(words, at)
  const link = { url: `https://www.example.org/guide/${prose.identifier()}` }
  const mark = withLinks && random.chance(0.5) ? link : random.pick(marks)
  const marked = mark.code ? prose.identifier() : words.slice(at, at + 2).join(' ')
  return paragraph([
    piece(`${words.slice(0, at).join(' ')} `),
    piece(marked, mark),
    piece(` ${words.slice(mark.code ? at : at + 2).join(' ')}`),
  ])
}

function someParagraph(random, prose, plan) {
  if (plan.language === undefined && random.chance(0.35)) return markedParagraph(random, prose, plan.links)
  return paragraph(prose.paragraph(random.integer(3, 7)))
}

function someList(random, prose) {
  const items = () => Array.from({ length: random.integer(2, 4) }, () => item(prose.item()))
  const outer = Array.from({ length: random.integer(3, 5) }, () => item(prose.item()))
  if (random.chance(0.45)) outer[1] = item(prose.item(), list(random.chance(0.4), items()))
  return list(random.chance(0.4), outer)
}

const COLUMNS = [
  (random) => String(random.integer(3, 9_800)),
  (random) => (random.next() * 90).toFixed(2),
  (random) => `${(random.next() * 99).toFixed(1)} %`,
  (random) => random.pick(['yes', 'no', 'partly', 'not measured']),
  (random, prose) => prose.adjective(),
]
const COLUMN_TITLES = ['Count', 'Mean', 'Share', 'Approved', 'Kind']

function someTable(random, prose, rules, number, most) {
  const described = (rules === 'grid' && random.chance(0.5)) || (rules === 'booktabs' && random.chance(0.3))
  const chosen = random.sample([0, 1, 2, 3, 4], random.integer(2, described ? most - 1 : most)).sort()
  const header = ['Item', ...chosen.map((index) => COLUMN_TITLES[index]), ...(described ? ['Remark'] : [])]
  const row = () => [
    prose.label(),
    ...chosen.map((index) => COLUMNS[index](random, prose)),
    ...(described ? [random.chance(0.15) ? '' : prose.item()] : []),
  ]
  const caption = `Table ${number}: ${prose.heading()} by ${prose.noun()}`
  return table(rules, header, Array.from({ length: random.integer(3, 8) }, row), caption)
}

/** What follows the first paragraph of a section: something else each time, so that every document holds every kind. */
function extra(random, prose, plan, counters) {
  counters.extras += 1
  const kinds = plan.extras
  const kind = kinds[counters.extras % kinds.length]
  if (kind === 'list') return someList(random, prose)
  if (kind === 'code') return code(plan.codeLanguage ?? '', prose.program())
  if (kind === 'figure') {
    counters.figures += 1
    return figure(`Figure ${counters.figures}: ${prose.heading()}, drawn by ${prose.person()}`)
  }
  counters.tables += 1
  const rules = plan.tables[counters.tables % plan.tables.length]
  return someTable(random, prose, rules, counters.tables, plan.columns === 2 ? 3 : 4)
}

function section(random, prose, plan, counters, numbers, text) {
  const depth = numbers.length
  const number = plan.numbered ? `${numbers.join('.')}${plan.numbered === 'dot' && depth === 1 ? '.' : ''} ` : ''
  const some = () => someParagraph(random, prose, plan)
  const blocks = [heading(depth + 1, `${number}${text}`), some()]
  if (plan.extras.length > 0 && random.chance(depth === 1 ? 0.8 : 0.4)) {
    blocks.push(extra(random, prose, plan, counters), some())
  }
  if (random.chance(0.6)) blocks.push(some())
  if (depth < 3 && random.chance(depth === 1 ? 0.5 : 0.15)) {
    for (let index = 1; index <= 2; index += 1) {
      blocks.push(...section(random, prose, plan, counters, [...numbers, index], prose.heading()))
    }
  }
  return blocks
}

/**
 * A document of `plan.sections` sections: {name, seed, topic, language?, columns, sections, numbered?, links?, abstract?,
 * codeLanguage?, extras: of list, table, code and figure, tables: of grid, booktabs and none}. The same plan gives the same document.
 */
export function makeDocument(plan) {
  const random = new Random(plan.seed)
  const prose = plan.language ? new FarEastProse(random, plan.language) : new Prose(random, TOPICS[plan.topic])
  const titles = plan.language ? prose.headings() : Array.from({ length: plan.sections }, () => prose.heading())
  const blocks = [heading(1, plan.language ? titles.at(-1) : prose.title())]
  if (!plan.language) blocks.push(paragraph(random.sample(PEOPLE, 2).join(', ')))
  if (plan.abstract) blocks.push(heading(2, 'Abstract'), paragraph(prose.paragraph(4)))
  const counters = { tables: 0, figures: 0, extras: plan.seed % 3 }
  for (let index = 1; index <= plan.sections; index += 1) {
    blocks.push(...section(random, prose, plan, counters, [index], titles[index - 1]))
  }
  return blocks
}
