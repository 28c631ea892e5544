import type { Verdicts } from '../../verdicts.js'
import type { FilePart, ImagePart, Part } from '../responses/parts.js'
import { type Block, CacheMarks, type PlacedBlock, textBlock } from '../to-messages/blocks.js'
import { documentBlock, imageBlock, checkDetail, webDocumentBlock } from '../to-messages/media-blocks.js'

/** Makes blocks of parts, and marks where the caller wants the prompt cache to be cut. */
export class BlockMaker {
  private readonly marks = new CacheMarks()

  constructor(private readonly verdicts: Verdicts) {}

  /** Marks within the results of tools are put on the `result`, as upstreams do not take them there. */
  blocksOf(parts: readonly Part[], result?: Block): PlacedBlock[] {
    return parts.flatMap((part) => {
      const { path, isBreakpoint } = part
      const block = this.blockOf(part)
      const marked = isBreakpoint ? (result ?? block) : undefined
      if (marked !== undefined) this.marks.add(marked, `${path}.prompt_cache_breakpoint`)
      else if (isBreakpoint) this.verdicts.drop(`${path}.prompt_cache_breakpoint`)
      return block === undefined ? [] : [{ block, path }]
    })
  }

  /** Once all blocks are made. */
  applyMarks(): void {
    this.marks.apply(this.verdicts)
  }

  private blockOf(part: Part): Block | undefined {
    if (part.kind === 'image') return this.image(part)
    return part.kind === 'file' ? this.document(part) : textBlock(part.text)
  }

  private image({ url, detail, path }: ImagePart): Block {
    checkDetail(detail, `${path}.detail`, this.verdicts)
    return imageBlock(url, `${path}.image_url`, this.verdicts)
  }

  private document({ data, url, filename, path }: FilePart): Block {
    return data === undefined
      ? webDocumentBlock(url, filename)
      : documentBlock(data, filename, `${path}.file_data`, this.verdicts)
  }
}
