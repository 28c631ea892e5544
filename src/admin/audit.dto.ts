import { ApiProperty } from '@nestjs/swagger'
import type { AuditOutcome, AuditRecord } from './admin-audit.repository.js'
import { pageOf } from './page-dto.js'

/** One thing that somebody did, or tried to do, with the operator's powers. */
export class AuditRecordDto {
  @ApiProperty()
  readonly sequence: number

  @ApiProperty({ description: 'Unix milliseconds' })
  readonly at: number

  @ApiProperty({ description: 'Fingerprint of the admin key, cli, or - for somebody who was not let in' })
  readonly actor: string

  @ApiProperty({ example: 'keys.create' })
  readonly action: string

  @ApiProperty({ type: String, nullable: true })
  readonly target: string | null

  @ApiProperty({ enum: ['begun', 'done', 'refused', 'failed'], description: 'begun = its end was never written down' })
  readonly outcome: AuditOutcome

  @ApiProperty({ type: 'object', additionalProperties: true })
  readonly details: Readonly<Record<string, unknown>>

  @ApiProperty()
  readonly request_id: string

  constructor(record: AuditRecord) {
    this.sequence = record.sequence
    this.at = record.atMs
    this.actor = record.actor
    this.action = record.action
    this.target = record.target ?? null
    this.outcome = record.outcome
    this.details = record.details
    this.request_id = record.requestId
  }
}

export class AuditPageDto extends pageOf(AuditRecordDto, 'Ask again with before=<last sequence>') {}
