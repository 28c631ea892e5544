import { type BeforeApplicationShutdown, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common'
import { Database } from '../storage/database.js'
import { TaskCreation } from './create-task.js'
import { TaskPoller } from './poller.js'
import { TaskRetention } from './task-retention.js'

/** Background work begins once the store is open, and ends before it closes. */
@Injectable()
export class TaskLoops implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  private stopping: Promise<unknown> | undefined

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

  /** Begins here, beside all other work that has to end: a store that hangs is waited for once, not by one after the other. */
  onModuleDestroy(): void {
    // Creates whose callers were cut off have still to write down that their outcome is unknown.
    this.stopping ??= Promise.all([this.poller.stop(), this.retention.stop(), this.creation.settled()])
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.stopping
  }
}
