import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { peek, type ProviderResponse } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import { jsonTextResponse, TaskEvents } from '../dialects/task-response.js'
import { eventResponse } from '../upstream/upstream-response.js'
import { assertTaskId, ImageChannels } from './image-tasks.js'
import { TaskWatches } from './image-watch.js'

/** Image tasks (specification: Image task). They are made elsewhere: nobody's ownership of one is known here. */
@Injectable()
export class ImageService {
  constructor(
    private readonly channels: ImageChannels,
    private readonly watches: TaskWatches,
    private readonly store: ConfigStore,
  ) {}

  /** The task object. */
  async fetch(id: string, call: RequestContext): Promise<ProviderResponse> {
    assertTaskId(id)
    const task = await this.channels.ask(id, call, (provider, context) => provider.fetch(id, context))
    return jsonTextResponse(200, task.object)
  }

  /** The task object with the seed of its picture. */
  async seed(id: string, call: RequestContext): Promise<ProviderResponse> {
    assertTaskId(id)
    const task = await this.channels.ask(id, call, (provider, context) => provider.seed(id, context))
    return jsonTextResponse(200, task.object)
  }

  /** The task object at each of its changes, until it has ended. */
  async events(id: string, call: RequestContext): Promise<ProviderResponse> {
    assertTaskId(id)
    const { maxAgeMs } = this.store.current.tasks
    const events = new TaskEvents((listener) => this.watches.follow(id, call, listener), call, maxAgeMs)
    // The first look, however long it takes, decides between an answer and an error.
    return await eventResponse(200, {}, await peek(events, { bytes: 1 }))
  }
}
