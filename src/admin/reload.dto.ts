import { ApiProperty } from '@nestjs/swagger'

export class ReloadDto {
  @ApiProperty({ enum: ['config_reload'] })
  readonly object = 'config_reload'

  @ApiProperty({ type: [String], description: 'Settings that changed, but keep their values until a restart' })
  readonly needs_restart: readonly string[]

  constructor(needsRestart: readonly string[]) {
    this.needs_restart = needsRestart
  }
}
