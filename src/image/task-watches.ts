import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Caller } from '../core/caller.js'
import { ownerOf } from '../core/owner.js'
import { Call } from '../core/request-context.js'
import type { TaskListener } from '../dialects/task-response.js'
import { ImageChannels } from './image-tasks.js'
import { TaskWatch } from './image-watch.js'

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
