import { gapBetween } from './line-maker.js'
import { fenceFor } from './piece-markdown.js'
import type { CodeBlock, Line } from './layout-model.js'

const MOST_BLANK_LINES = 3
const MOST_INDENT = 120

/** Fenced code: indentation from where the lines begin, blank lines from the distance of baselines. */
export function codeMarkdown(block: CodeBlock, leading: number): string {
  const advance = advanceOf(block.lines)
  const left = block.lines.reduce((least, line) => Math.min(least, line.x1), Infinity)
  const pitch = pitchOf(block.lines) ?? leading
  const texts: string[] = []
  let above: Line | undefined
  for (const line of block.lines) {
    const blank = above === undefined ? 0 : Math.round((line.y - above.y) / pitch) - 1
    for (let count = 0; count < Math.min(blank, MOST_BLANK_LINES); count += 1) texts.push('')
    const indent = Math.min(MOST_INDENT, Math.round((line.x1 - left) / advance))
    texts.push((' '.repeat(indent) + codeText(line, advance)).trimEnd())
    above = line
  }
  const text = texts.join('\n')
  const fence = fenceFor(text, 3)
  return `${fence}\n${text}\n${fence}`
}

/** Width of a character. */
function advanceOf(lines: readonly Line[]): number {
  const advances = lines
    .flatMap((line) => line.spans)
    .map((span) => (span.x2 - span.x1) / span.text.length)
    .filter((advance) => advance > 0)
    .sort((a, b) => a - b)
  return advances[advances.length >>> 1] ?? 6
}

/** The least distance of baselines that comes more than once; the least one when none does. */
function pitchOf(lines: readonly Line[]): number | undefined {
  const distances = lines
    .slice(1)
    .map((line, index) => line.y - (lines[index]?.y ?? 0))
    .filter((distance) => distance > sizeOf(lines) * 0.7)
    .sort((a, b) => a - b)
  return distances.find((distance, index) => (distances[index + 1] ?? Infinity) - distance < 0.6) ?? distances[0]
}

function sizeOf(lines: readonly Line[]): number {
  return lines[0]?.size ?? 10
}

function codeText(line: Line, advance: number): string {
  let text = ''
  for (const [index, span] of line.spans.entries()) {
    const before = line.spans[index - 1]
    const gap = before === undefined ? 0 : Math.round(gapBetween(before, span) / advance)
    text += ' '.repeat(Math.max(0, Math.min(gap, MOST_INDENT))) + span.text
  }
  return text.replaceAll('\u00a0', ' ').replaceAll('\u00ad', '-')
}
