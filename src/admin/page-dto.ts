import { ApiProperty } from '@nestjs/swagger'
import type { Type } from '@nestjs/common'

/** What the operator's routes show of a long list: some of it, and whether there is more. */
export interface Page<Item> {
  readonly object: 'list'
  readonly data: readonly Item[]
  readonly has_more: boolean
}

/** The class of such pages; `next` says how to ask for the following one. */
export function pageOf<Item>(
  item: Type<Item>,
  next: string,
): new (data: readonly Item[], hasMore: boolean) => Page<Item> {
  class PageDto implements Page<Item> {
    @ApiProperty({ enum: ['list'] })
    readonly object = 'list'

    @ApiProperty({ type: [item] })
    readonly data: readonly Item[]

    @ApiProperty({ description: next })
    readonly has_more: boolean

    constructor(data: readonly Item[], hasMore: boolean) {
      this.data = data
      this.has_more = hasMore
    }
  }
  return PageDto
}
