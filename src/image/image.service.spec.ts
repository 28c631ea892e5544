import { describe, expect, it, jest } from '@jest/globals'
import { newCall } from '../../test/support/raw-upstream.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { GatewayError } from '../core/gateway-error.js'
import type { UpstreamImageTask } from '../providers/image.contract.js'
import type { ImageChannels } from './image-tasks.js'
import { ImageService } from './image.service.js'
import { unknownTask } from './task-id.js'
import { TaskWatches } from './task-watches.js'

describe('The events of a task', () => {
  it('promise nothing before the upstream has answered, however long it takes', async () => {
    jest.useFakeTimers()
    try {
      let fail: (error: GatewayError) => void = () => undefined
      const channels: Pick<ImageChannels, 'ask'> = {
        ask: () =>
          new Promise<UpstreamImageTask>((_answer, reject) => {
            fail = reject
          }),
      }
      const store = new ConfigStore(parseConfig('{}', {}))
      const watches = new TaskWatches(channels as ImageChannels, store)
      const service = new ImageService(channels as ImageChannels, watches, store)
      const outcomes: unknown[] = []
      void service.events('1', newCall()).then(
        (answer) => outcomes.push(answer.status),
        (error: unknown) => outcomes.push(error),
      )
      await jest.advanceTimersByTimeAsync(120_000)
      expect(outcomes).toEqual([])
      const failure = unknownTask()
      fail(failure)
      await jest.advanceTimersByTimeAsync(0)
      expect(outcomes).toEqual([failure])
      expect(jest.getTimerCount()).toBe(0)
    } finally {
      jest.useRealTimers()
    }
  })
})
