import { ApiProperty } from '@nestjs/swagger'
import type { Period } from '../usage/usage-query.js'
import type { UsageSum } from '../usage/usage-usage-reports.js'
import { UsageReportDto, UsageSumDto } from '../usage/usage.dto.js'

/** What some records of any callers add up to. */
export class KeyUsageSumDto extends UsageSumDto {
  @ApiProperty({ required: false, description: 'With group_by=key; caller = all with an upstream key of their own' })
  readonly key?: string

  constructor(sum: UsageSum) {
    super(sum)
    if (sum.keyId !== undefined) this.key = sum.keyId
  }
}

export class KeyUsageSumsDto extends UsageReportDto {
  @ApiProperty({ type: [KeyUsageSumDto] })
  readonly data: readonly KeyUsageSumDto[]

  constructor(period: Period, sums: readonly UsageSum[]) {
    super(period)
    this.data = sums.map((sum) => new KeyUsageSumDto(sum))
  }
}
