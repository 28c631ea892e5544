import { describe, expect, it, jest } from '@jest/globals'
import { newCall } from '../../test/support/raw-upstream.js'
import { GatewayError } from '../common/errors/gateway-error.js'
import { parseConfig } from '../config/config-loader.js'
import { ConfigStore } from '../config/config-store.js'
import type { UpstreamImageTask } from '../providers/contracts/image.contract.js'
import type { ImageChannels } from './image-channels.js'
import { ImageService } from './image.service.js'
import { TaskWatches } from './task-watches.js'
import { unknownTask } from './task-id.js'

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
