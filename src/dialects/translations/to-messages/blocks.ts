import type { JsonTexts } from '../../../core/json-text.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { Verdicts } from '../../verdicts.js'
import type { PathMap } from '../caller-paths.js'
import { isAbsent, type Members } from '../members.js'

/** A content block of the upstream. */
export type Block = Record<string, unknown> & { readonly type: string }

/** What a piece of an upstream's answer says; '' where that is nothing. Throws `upstream_failed` for what is no text: it would be missing. */
export function textIn(piece: unknown): string {
  if (isAbsent(piece)) return ''
  if (typeof piece !== 'string') throw malformedResponse('The upstream sent a piece that is no text.')
  return piece
}

/** JSON text of the input of a whole answer's block, as it is spelled in `texts`; some upstreams leave it out where it is empty. */
export const inputText = ({ input }: Members, index: number, texts: JsonTexts): string =>
  isAbsent(input) ? '{}' : (texts.at('content', index, 'input')?.text.text ?? '{}')

/** A block, and the caller's field that it was made of. */
export interface PlacedBlock {
  readonly block: Block
  readonly path: string
}

/** The content that stands at `place` of the upstream's request, and in `paths` the caller's fields that its blocks were made of. */
export function contentAt(place: string, placed: readonly PlacedBlock[], paths: PathMap): string | readonly Block[] {
  const blocks = placed.map(({ block, path }, index) => {
    paths.set(`${place}.${index}`, path)
    return block
  })
  return contentOf(blocks)
}

/** One text alone is a string, the same whatever the client's dialect. A mark of the cache needs a block. */
export function contentOf(blocks: readonly Block[]): string | readonly Block[] {
  const [first] = blocks
  const text = blocks.length === 1 && first?.type === 'text' ? first['text'] : undefined
  return typeof text === 'string' && first?.['cache_control'] === undefined ? text : blocks
}

/** A text block; none for a text of white space alone, which upstreams refuse. */
export const textBlock = (text: string): Block | undefined => (text.trim() === '' ? undefined : { type: 'text', text })

/** What a user says where an upstream wants one to speak and the caller's conversation has none. */
export const placeholderAt = (path: string): PlacedBlock => ({ block: { type: 'text', text: '...' }, path })

/** Upstreams refuse a request with more. */
const MAXIMUM_CACHE_MARKS = 4

/** Where the caller wants the prompt cache to be cut. */
export class CacheMarks {
  private readonly marks: PlacedBlock[] = []

  add(block: Block, path: string): void {
    this.marks.push({ block, path })
  }

  /**
   * Marks the last four: what stands before the last one is looked up in the cache as a whole, so that earlier marks only
   * matter to requests that went before.
   */
  apply(verdicts: Verdicts): void {
    const surplus = Math.max(0, this.marks.length - MAXIMUM_CACHE_MARKS)
    this.marks.forEach(({ block, path }, index) => {
      if (index < surplus) verdicts.drop(path)
      else block['cache_control'] = { type: 'ephemeral' }
    })
  }
}
