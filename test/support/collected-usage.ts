import { Global, Module } from '@nestjs/common'
import { type EndedTask, type UsageEntry, UsageRecorder } from '../../src/common/usage/usage-recorder.js'

/** Keeps what it is told. */
export class CollectedUsage extends UsageRecorder {
  readonly entries: UsageEntry[] = []
  readonly tasks: EndedTask[] = []

  override record(entry: UsageEntry): void {
    this.entries.push(entry)
  }

  override taskEnded(task: EndedTask): void {
    this.tasks.push(task)
  }
}

/** For applications that are made of less than all modules. */
@Global()
@Module({ providers: [{ provide: UsageRecorder, useClass: CollectedUsage }], exports: [UsageRecorder] })
export class CollectedUsageModule {}
