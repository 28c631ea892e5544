import { Injectable } from '@nestjs/common'
import { eventAnswer } from '../common/http/answers.js'
import type { Call } from '../common/http/call.js'
import { hold } from '../common/http/held-source.js'
import { TaskEvents } from '../common/http/task-events.js'
import { jsonTextAnswer } from '../common/http/task-answer.js'
import type { UpstreamAnswer } from '../common/http/upstream-answer.js'
import { ConfigStore } from '../config/config-store.js'
import { ImageChannels } from './image-channels.js'
import { assertTaskId } from './task-id.js'
import { TaskWatches } from './task-watches.js'

/** Image tasks (specification: Image task). They are made elsewhere: nobody's ownership of one is known here. */
@Injectable()
export class ImageService {
  constructor(
    private readonly channels: ImageChannels,
    private readonly watches: TaskWatches,
    private readonly store: ConfigStore,
  ) {}

  /** The task object. */
  async fetch(id: string, call: Call): Promise<UpstreamAnswer> {
    assertTaskId(id)
    const task = await this.channels.ask(id, call, (provider, context) => provider.fetch(id, context))
    return jsonTextAnswer(200, task.object)
  }

  /** The task object with the seed of its picture. */
  async seed(id: string, call: Call): Promise<UpstreamAnswer> {
    assertTaskId(id)
    const task = await this.channels.ask(id, call, (provider, context) => provider.seed(id, context))
    return jsonTextAnswer(200, task.object)
  }

  /** The task object at each of its changes, until it has ended. */
  async events(id: string, call: Call): Promise<UpstreamAnswer> {
    assertTaskId(id)
    const { maxAgeMs } = this.store.current.tasks
    const events = new TaskEvents((listener) => this.watches.follow(id, call, listener), call, maxAgeMs)
    // The first look, however long it takes, decides between an answer and an error.
    return await eventAnswer(200, {}, await hold(events, { bytes: 1 }))
  }
}
