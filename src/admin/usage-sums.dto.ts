import { ApiProperty } from '@nestjs/swagger'
import { UsageSumDto } from '../usage/usage.dto.js'
import type { UsageSum } from '../usage/usage-reports.js'

/** What some records of any callers add up to. */
export class KeyUsageSumDto extends UsageSumDto {
  @ApiProperty({ required: false, description: 'With group_by=key; caller = all with an upstream key of their own' })
  readonly key?: string

  constructor(sum: UsageSum) {
    super(sum)
    if (sum.keyId !== undefined) this.key = sum.keyId
  }
}

export class KeyUsageSumsDto {
  @ApiProperty({ enum: ['usage'] })
  readonly object = 'usage'

  @ApiProperty({ description: 'ISO 8601' })
  readonly from: string

  @ApiProperty({ description: 'ISO 8601, not included' })
  readonly to: string

  @ApiProperty({ type: [KeyUsageSumDto] })
  readonly data: readonly KeyUsageSumDto[]

  constructor({ fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }, sums: readonly UsageSum[]) {
    this.from = new Date(fromMs).toISOString()
    this.to = new Date(toMs).toISOString()
    this.data = sums.map((sum) => new KeyUsageSumDto(sum))
  }
}
