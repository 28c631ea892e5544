import { WORD_GROUPS } from './class-words.js'
import { NO_WORD, PLACES } from './container-traits.js'
import {
  clamp,
  halfOf,
  holdsHalf,
  linkedShare,
  ofLevel,
  ownScore,
  proseOf,
  shareNear,
  stepsFromBest,
  stepsTo,
  type Subject,
  textNear,
} from './feature-subject.js'

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

/** What the model is told of a block, in the order of its numbers. */
export const FEATURES: readonly Feature[] = [
  ...OF_THE_LINE,
  ...OF_ITS_PLACE,
  ...OF_WHAT_IS_AROUND,
  ...OF_THE_BEST,
  ...OF_ITS_NEIGHBOURS,
  ...OF_THE_PAGE,
]
