import { describe, expect, it } from '@jest/globals'
import { parseScrape, valueOf } from './prometheus-text.js'

const counter = (lines: string): string => `# HELP a_total A.\n# TYPE a_total counter\n${lines}`
const histogram = (lines: string): string => `# HELP h_seconds H.\n# TYPE h_seconds histogram\n${lines}`

const SOUND = [
  'h_seconds_bucket{r="/",le="0.1"} 1',
  'h_seconds_bucket{r="/",le="+Inf"} 2',
  'h_seconds_sum{r="/"} 0.5',
  'h_seconds_count{r="/"} 2',
]

describe('A scrape', () => {
  it('is read with its labels as they were meant', () => {
    const families = parseScrape(
      counter('a_total{x="a\\"b\\\\c\\nd",y="1"} 3\na_total 2e3\n') + histogram(SOUND.join('\n') + '\n'),
    )
    expect(valueOf(families, 'a_total', { y: '1', x: 'a"b\\c\nd' })).toBe(3)
    expect(valueOf(families, 'a_total')).toBe(2000)
    expect(valueOf(families, 'h_seconds_bucket', { r: '/', le: '+Inf' })).toBe(2)
    expect(valueOf(families, 'a_total', { y: '1' })).toBeUndefined()
  })

  it.each([
    ['a line without an end', counter('a_total 1')],
    ['a sample of another family', counter('b_total 1\n')],
    ['a sample before any family', 'a_total 1\n'],
    ['a type without help', '# TYPE a_total counter\na_total 1\n'],
    ['a family twice', counter('a_total 1\n') + counter('a_total{x="1"} 1\n')],
    ['a series twice', counter('a_total{x="1",y="2"} 1\na_total{y="2",x="1"} 1\n')],
    ['a label twice', counter('a_total{x="1",x="2"} 1\n')],
    ['a label without quotes', counter('a_total{x=1} 1\n')],
    ['an unknown escape', counter('a_total{x="\\d"} 1\n')],
    ['no comma between labels', counter('a_total{x="1"y="2"} 1\n')],
    ['a comma too many', counter('a_total{x="1",} 1\n')],
    ['a value that is no number', counter('a_total undefined\n')],
    ['a negative counter', counter('a_total -1\n')],
    ['buckets without an end', histogram(SOUND.filter((line) => !line.includes('Inf')).join('\n') + '\n')],
    ['buckets that shrink', histogram(SOUND.join('\n').replace('} 1', '} 3') + '\n')],
    ['a count beside the buckets', histogram(SOUND.join('\n').replace('count{r="/"} 2', 'count{r="/"} 3') + '\n')],
    ['buckets without a sum', histogram(SOUND.filter((line) => !line.includes('sum')).join('\n') + '\n')],
  ])('is refused with %s', (_what, text) => {
    expect(() => parseScrape(text)).toThrow()
  })
})
