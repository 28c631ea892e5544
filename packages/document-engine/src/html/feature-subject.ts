import type { ContainerTraits } from './container-traits.js'
import type { LineTraits } from './line-traits.js'
import type { Container, TextBlock } from './page-blocks.js'
import { ancestorsOf, type PageTraits } from './page-traits.js'

const WINDOW = 8
const OWN_LEVELS = 4
const NO_SCORE = -50

/** One block, and where it stands. */
export interface Subject {
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

export function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value))
}

export function linkedShare(container: Container): number {
  return container.linkedLength / Math.max(1, container.textLength)
}

export function proseOf(traits: PageTraits): number {
  return Math.max(1, traits.page.body.proseLength)
}

/** Of the container so many levels up; `otherwise` beyond the body. */
export function ofLevel(
  around: readonly Container[],
  level: number,
  otherwise: number,
  value: (outer: Container) => number,
): number {
  const outer = around[level]
  return outer === undefined ? otherwise : value(outer)
}

export function holdsHalf(container: Container, { page }: PageTraits): boolean {
  return container.proseLength * 2 >= page.body.proseLength
}

/** The innermost container around the block that holds half of the prose of the page. */
export function halfOf({ around, traits }: Subject): Container {
  return around.find((outer) => holdsHalf(outer, traits)) ?? traits.page.body
}

/** How far the best container lies below where its path and that of the block part; -1 inside it. */
export function stepsFromBest({ around, traits }: Subject): number {
  const { best } = traits.scores
  const fork = around.find((outer) => traits.aroundBest.has(outer))
  return fork === undefined || fork === best ? -1 : best.depth - fork.depth
}

/** The best score close around the block, as a share of the best of the page. */
export function ownScore({ around, traits }: Subject): number {
  const { byContainer, bestScore } = traits.scores
  const scores = around.slice(0, OWN_LEVELS).map((outer) => byContainer.get(outer) ?? NO_SCORE)
  return Math.max(NO_SCORE, ...scores) / bestScore
}

/** Average length of the blocks close before and after. */
export function textNear(subject: Subject): number {
  return sumNear(subject, ({ length }) => length) / (2 * WINDOW + 1)
}

export function shareNear(subject: Subject): number {
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

/** How many lines there are to the first of that kind; `farthest` when none is closer. */
export function stepsTo(
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
