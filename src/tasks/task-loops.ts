import { type BeforeApplicationShutdown, Injectable, type OnModuleInit } from '@nestjs/common'
import { Database } from '../common/database/database.js'
import { TaskCreation } from './create-task.js'
import { TaskPoller } from './task-poller.js'
import { TaskRetention } from './task-retention.js'

/** Background work begins once the store is open, and ends before it closes. */
@Injectable()
export class TaskLoops implements OnModuleInit, BeforeApplicationShutdown {
  constructor(
    private readonly database: Database,
    private readonly poller: TaskPoller,
    private readonly retention: TaskRetention,
    private readonly creation: TaskCreation,
  ) {}

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.poller.start()
      this.retention.start()
    })
  }

  /** Creates whose callers were cut off have still to write down that their outcome is unknown. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.poller.stop(), this.retention.stop(), this.creation.settled()])
  }
}
