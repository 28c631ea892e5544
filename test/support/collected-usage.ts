import { Global, Module } from '@nestjs/common'
import { type EndedTask, type SettledTask, type UsageEntry, UsageRecorder } from '../../src/core/usage-recorder.js'
import { usageRecord } from './usage-records.js'

/** Keeps what it is told. */
export class CollectedUsage extends UsageRecorder {
  readonly entries: UsageEntry[] = []
  readonly tasks: EndedTask[] = []
  /** Those whose records were written down with their ends. */
  readonly settled: EndedTask[] = []

  override record(entry: UsageEntry): void {
    this.entries.push(entry)
  }

  override taskEnded(task: EndedTask): void {
    this.tasks.push(task)
  }

  override settleTask(task: EndedTask): SettledTask {
    return {
      record: usageRecord({ id: `task ${task.id}`, kind: 'task' }),
      whenWritten: () => {
        this.settled.push(task)
        this.tasks.push(task)
      },
    }
  }
}

/** For applications that are made of less than all modules. */
@Global()
@Module({ providers: [{ provide: UsageRecorder, useClass: CollectedUsage }], exports: [UsageRecorder] })
export class CollectedUsageModule {}
