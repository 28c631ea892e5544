import { Injectable } from '@nestjs/common'
import type { Caller } from '../common/auth/caller.js'
import { ownerOf } from '../common/auth/owner.js'
import { Call } from '../common/http/call.js'
import type { TaskListener } from '../common/http/task-events.js'
import { ConfigStore } from '../config/config-store.js'
import { ImageChannels } from './image-channels.js'
import { TaskWatch } from './task-watch.js'

/** The watches that are under way: one for each task, however many follow it. */
@Injectable()
export class TaskWatches {
  private readonly running = new Map<string, TaskWatch>()

  constructor(
    private readonly channels: ImageChannels,
    private readonly store: ConfigStore,
  ) {}

  /** Follows a task from now on; returns the way to stop. */
  follow(id: string, { caller, path }: Pick<Call, 'caller' | 'path'>, listener: TaskListener): () => void {
    const key = `${askingKey(caller)} ${id}`
    const watch = this.running.get(key) ?? this.begin(key, id, caller, path)
    return watch.add(listener)
  }

  private begin(key: string, id: string, caller: Caller, path: string): TaskWatch {
    // The questions are nobody's: a follower who leaves must not end them for the others.
    const call = new Call(`watch-${id}`, 'GET', path, performance.now())
    call.caller = caller
    const watch = new TaskWatch({
      look: () => this.channels.ask(id, call, (provider, context) => provider.fetch(id, context)),
      pauseMs: () => this.store.current.tasks.pollIntervalMs,
      close: () => {
        this.running.delete(key)
        call.departure.announce()
      },
    })
    this.running.set(key, watch)
    return watch
  }
}

/** With which key upstreams are asked: answers to a key of a caller's own are that caller's alone. */
const askingKey = (caller: Caller): string => (caller.bearer === undefined ? 'gateway' : ownerOf(caller))
