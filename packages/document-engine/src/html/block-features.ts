import { WORD_GROUPS } from './class-words.js'
import { ancestorsOf, type ContainerTraits, type LineTraits, NO_WORD, type PageTraits, PLACES } from './page-traits.js'
import type { Container, TextBlock } from './text-blocks.js'

const WINDOW = 8
const OWN_LEVELS = 4
const NO_SCORE = -50

/** One block, and where it stands. */
interface Subject {
  readonly traits: PageTraits
  readonly index: number
  readonly block: TextBlock
  readonly line: LineTraits
  readonly surroundings: ContainerTraits
  /** The container of the block and those around it, the innermost first. */
  readonly around: readonly Container[]
  /** Characters of text, and of prose, before the block. */
  readonly textBefore: number
  readonly proseBefore: number
}

/** The blocks of a page in document order. */
export function* subjectsOf(traits: PageTraits): Generator<Subject> {
  let [textBefore, proseBefore] = [0, 0]
  for (const [index, block] of traits.page.blocks.entries()) {
    const line = traits.lines[index]
    const surroundings = traits.containers.get(block.container)
    if (line === undefined || surroundings === undefined) continue
    yield {
      traits,
      index,
      block,
      line,
      surroundings,
      around: ancestorsOf(block.container),
      textBefore,
      proseBefore,
    }
    textBefore += line.length
    if (line.isProse) proseBefore += line.length
  }
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value))
}

function linkedShare(container: Container): number {
  return container.linkedLength / Math.max(1, container.textLength)
}

function proseOf(traits: PageTraits): number {
  return Math.max(1, traits.page.body.proseLength)
}

/** The value for the container that many levels up; `otherwise` beyond the body. */
function ofLevel(
  around: readonly Container[],
  level: number,
  otherwise: number,
  value: (outer: Container) => number,
): number {
  const outer = around[level]
  return outer === undefined ? otherwise : value(outer)
}

function holdsHalf(container: Container, { page }: PageTraits): boolean {
  return container.proseLength * 2 >= page.body.proseLength
}

/** The innermost container around the block that holds half of the prose of the page. */
function halfOf({ around, traits }: Subject): Container {
  return around.find((outer) => holdsHalf(outer, traits)) ?? traits.page.body
}

/** How far the best container lies below where its path and that of the block part; -1 inside it. */
function stepsFromBest({ around, traits }: Subject): number {
  const { best } = traits.scores
  const fork = around.find((outer) => traits.aroundBest.has(outer))
  return fork === undefined || fork === best ? -1 : best.depth - fork.depth
}

/** The best score close around the block, as a share of the best of the page. */
function ownScore({ around, traits }: Subject): number {
  const { byContainer, bestScore } = traits.scores
  const scores = around.slice(0, OWN_LEVELS).map((outer) => byContainer.get(outer) ?? NO_SCORE)
  return Math.max(NO_SCORE, ...scores) / bestScore
}

/** Average length of the blocks close before and after. */
function textNear(subject: Subject): number {
  return sumNear(subject, ({ length }) => length) / (2 * WINDOW + 1)
}

function shareNear(subject: Subject): number {
  const linked = sumNear(subject, ({ length, linkedShare: share }) => length * share)
  return linked / sumNear(subject, ({ length }) => length)
}

function sumNear({ index, traits }: Subject, value: (line: LineTraits) => number): number {
  let sum = 0
  for (let at = index - WINDOW; at <= index + WINDOW; at += 1) {
    const line = traits.lines[at]
    if (line !== undefined) sum += value(line)
  }
  return sum
}

/** Distance in lines to the nearest one of that kind; at most `farthest`. */
function stepsTo(
  lines: readonly LineTraits[],
  from: number,
  direction: 1 | -1,
  farthest: number,
  isWanted: (line: LineTraits) => boolean,
): number {
  for (let steps = 0; steps < farthest; steps += 1) {
    const line = lines[from + steps * direction]
    if (line === undefined) return farthest
    if (isWanted(line)) return steps
  }
  return farthest
}

type Feature = readonly [name: string, value: (subject: Subject) => number]

const LEVELS = [1, 2, 3, 4, 5] as const
const NEIGHBOURS = [-2, -1, 1, 2] as const
const FARTHEST_PROSE = 12
const FARTHEST_HEADING = 15
const OUTSIDE = 20

const OF_THE_LINE: readonly Feature[] = [
  ['length', ({ line }) => Math.log1p(line.length)],
  ['words', ({ line }) => Math.min(line.words, 200)],
  ['linked', ({ line }) => line.linkedShare],
  ['links', ({ block }) => block.links],
  ['upper', ({ line }) => line.upperShare],
  ['capitalized', ({ line }) => line.capitalizedShare],
  ['sentences', ({ line }) => Math.min(line.sentences, 10)],
  ['endsSentence', ({ line }) => Number(line.endsSentence)],
  ['isParagraph', ({ block }) => Number(block.container.element.localName === 'p')],
  ['isItem', ({ block }) => Number(block.container.element.localName === 'li')],
  ['headingLevel', ({ line }) => line.headingLevel],
  ['repeated', ({ block, traits }) => Math.min(traits.occurrences.get(block.text) ?? 1, 4)],
]

const OF_ITS_PLACE: readonly Feature[] = [
  ...PLACES.map((place, bit): Feature => [`in ${place}`, ({ surroundings }) => (surroundings.places >> bit) & 1]),
  ...WORD_GROUPS.map((group, at): Feature => [
    `to ${group}`,
    (subject) => subject.surroundings.distances[at] ?? NO_WORD,
  ]),
  ['isArticleBody', ({ surroundings }) => Number(surroundings.isArticleBody)],
  ['depth', ({ block }) => Math.min(block.container.depth, 60)],
  ['place', ({ index, traits }) => index / traits.lines.length],
  ['textPlace', ({ textBefore, traits }) => textBefore / traits.page.body.textLength],
  ['proseBefore', ({ proseBefore, traits }) => proseBefore / proseOf(traits)],
  [
    'proseAfter',
    ({ proseBefore, line, traits }) => 1 - (proseBefore + (line.isProse ? line.length : 0)) / proseOf(traits),
  ],
  ['afterTitle', ({ index, traits }) => (traits.titleAt < 0 ? -50 : clamp(index - traits.titleAt, -40, 80))],
]

const OF_WHAT_IS_AROUND: readonly Feature[] = [
  ...LEVELS.flatMap((level): Feature[] => [
    [
      `up${level} share`,
      ({ around, traits }) => ofLevel(around, level, 1, (outer) => outer.textLength / traits.page.body.textLength),
    ],
    [`up${level} linked`, ({ around }) => ofLevel(around, level, 0, linkedShare)],
    [
      `up${level} average`,
      ({ around }) => ofLevel(around, level, 0, (outer) => Math.log1p(outer.textLength / outer.blocks)),
    ],
    [
      `up${level} prose`,
      ({ around, traits }) => ofLevel(around, level, 1, (outer) => outer.proseLength / proseOf(traits)),
    ],
    [
      `up${level} proseShare`,
      ({ around }) => ofLevel(around, level, 0, (outer) => outer.proseLength / outer.textLength),
    ],
    [`up${level} blocks`, ({ around }) => ofLevel(around, level, 0, (outer) => Math.log1p(outer.blocks))],
  ]),
  ['toHalf', ({ around, traits }) => around.findIndex((outer) => holdsHalf(outer, traits))],
  ['halfShare', (subject) => halfOf(subject).textLength / subject.traits.page.body.textLength],
  ['halfLinked', (subject) => linkedShare(halfOf(subject))],
  ['siblings', ({ around }) => Math.min(around[1]?.parts ?? 0, 50)],
  ['cousins', ({ around }) => Math.min(around[2]?.parts ?? 0, 50)],
  ['controls', ({ around }) => Math.min((around[0]?.controls ?? 0) + (around[1]?.controls ?? 0), 10)],
]

const OF_THE_BEST: readonly Feature[] = [
  [
    'toBest',
    ({ around, traits }) =>
      Math.min(
        around.findIndex((outer) => traits.aroundBest.has(outer)),
        OUTSIDE,
      ),
  ],
  ['bestAbove', stepsFromBest],
  ['ownScore', ownScore],
  ['best share', ({ traits }) => traits.scores.best.textLength / traits.page.body.textLength],
  ['best prose', ({ traits }) => traits.scores.best.proseLength / proseOf(traits)],
  ['best linked', ({ traits }) => linkedShare(traits.scores.best)],
  ['best score', ({ traits }) => Math.log1p(traits.scores.bestScore)],
  ['afterBest', ({ index, traits }) => clamp(index - clamp(index, traits.bestFrom, traits.bestTo), -30, 60)],
  [
    'bestPlace',
    ({ index, traits }) => clamp((index - traits.bestFrom) / Math.max(1, traits.bestTo - traits.bestFrom), -1, 2),
  ],
]

const OF_ITS_NEIGHBOURS: readonly Feature[] = [
  ...NEIGHBOURS.flatMap((offset): Feature[] => [
    [`at${offset} length`, ({ index, traits }) => Math.log1p(traits.lines[index + offset]?.length ?? 0)],
    [`at${offset} linked`, ({ index, traits }) => traits.lines[index + offset]?.linkedShare ?? 1],
  ]),
  ['near length', (subject) => Math.log1p(textNear(subject))],
  ['near linked', shareNear],
  ['toNextProse', ({ index, traits }) => stepsTo(traits.lines, index + 1, 1, FARTHEST_PROSE, ({ isProse }) => isProse)],
  [
    'toHeading',
    ({ index, traits }) => stepsTo(traits.lines, index, -1, FARTHEST_HEADING, (line) => line.headingLevel > 0),
  ],
  ['likeNext', ({ index, around, traits }) => Number(traits.page.blocks[index + 1]?.container.parent === around[1])],
]

const OF_THE_PAGE: readonly Feature[] = [
  ['page length', ({ traits }) => Math.log1p(traits.page.body.textLength)],
  ['page blocks', ({ traits }) => Math.log1p(traits.lines.length)],
  ['page linked', ({ traits }) => linkedShare(traits.page.body)],
  ['page proseShare', ({ traits }) => traits.page.body.proseLength / traits.page.body.textLength],
  ['page prose', ({ traits }) => Math.min(traits.proseBlocks, 60)],
  ['page paragraph', ({ traits }) => Math.log1p(traits.page.body.proseLength / Math.max(1, traits.proseBlocks))],
  ['page comments', ({ traits }) => traits.commentShare],
  ['page forum', ({ traits }) => traits.forumShare],
  ['page beforeComments', ({ traits }) => Math.log1p(traits.proseBeforeComments)],
  ['page articles', ({ traits }) => Math.min(traits.articles, 6)],
  ['page saysArticle', ({ traits }) => Number(traits.saysArticle)],
  ['page articleData', ({ traits }) => Number(traits.hasArticleData)],
  ['page productData', ({ traits }) => Number(traits.hasProductData)],
]

/** Features of a block, in the order of the model's inputs. */
export const FEATURES: readonly Feature[] = [
  ...OF_THE_LINE,
  ...OF_ITS_PLACE,
  ...OF_WHAT_IS_AROUND,
  ...OF_THE_BEST,
  ...OF_ITS_NEIGHBOURS,
  ...OF_THE_PAGE,
]
