import { describe, expect, it } from '@jest/globals'
import type { PinnedResponse, ResponsePins } from '../../src/responses/response-pins.js'
import { laterMillisecond } from '../support/eventually.js'

let count = 0

/** With ids that no test has used. */
function someResponse(given: Partial<PinnedResponse> = {}): PinnedResponse {
  count += 1
  return { ownerId: `owner-${count}`, channelId: 'main', responseId: `resp_${count}`, itemIds: [], ...given }
}

/** What every store of pins does; `pinsOf` is asked anew in each test, whose store is empty. */
export function describeResponsePins(name: string, pinsOf: () => ResponsePins): void {
  describe(`pins of responses in ${name}`, () => {
    it('tell the channel of a response, and of each of its items', async () => {
      const pins = pinsOf()
      const { ownerId, responseId } = someResponse()
      await pins.keep({ ownerId, channelId: 'first', responseId, itemIds: ['rs_a', 'msg_a', 'rs_a'] })
      await pins.keep(someResponse({ ownerId, channelId: 'second', itemIds: ['msg_b'] }))
      const channels = await pins.channelsOf(ownerId, [responseId, 'rs_a', 'msg_a', 'msg_b', 'msg_unknown'])
      expect([...channels].sort()).toEqual(
        [
          [responseId, 'first'],
          ['rs_a', 'first'],
          ['msg_a', 'first'],
          ['msg_b', 'second'],
        ].sort(),
      )
    })

    it('are an owner’s own, also where two have the same ids', async () => {
      const pins = pinsOf()
      const one = someResponse({ channelId: 'first', itemIds: ['msg_shared'] })
      const other = { ...one, ownerId: 'another', channelId: 'second' }
      await pins.keep(one)
      const ids = [one.responseId, 'msg_shared']
      expect([...(await pins.channelsOf('another', ids))]).toEqual([])
      await pins.keep(other)
      expect([...(await pins.channelsOf('another', ids)).values()]).toEqual(['second', 'second'])
      await pins.forget('another', one.responseId)
      expect([...(await pins.channelsOf('another', ids))]).toEqual([])
      expect([...(await pins.channelsOf(one.ownerId, ids)).values()]).toEqual(['first', 'first'])
    })

    it('stay as they were first kept', async () => {
      const pins = pinsOf()
      const response = someResponse({ channelId: 'first' })
      await pins.keep(response)
      await pins.keep({ ...response, channelId: 'second', itemIds: ['msg_later'] })
      const channels = await pins.channelsOf(response.ownerId, [response.responseId, 'msg_later'])
      expect(Object.fromEntries(channels)).toEqual({ [response.responseId]: 'first', msg_later: 'second' })
    })

    it('are forgotten with their items, and those of other responses stay', async () => {
      const pins = pinsOf()
      const gone = someResponse({ itemIds: ['msg_gone'] })
      const stays = someResponse({ ownerId: gone.ownerId, itemIds: ['msg_stays'] })
      await pins.keep(gone)
      await pins.keep(stays)
      await pins.forget(gone.ownerId, gone.responseId)
      const ids = [gone.responseId, 'msg_gone', stays.responseId, 'msg_stays']
      expect([...(await pins.channelsOf(gone.ownerId, ids)).keys()].sort()).toEqual(['msg_stays', stays.responseId])
    })

    it('older than a time are pruned, the oldest first, so many at once', async () => {
      const pins = pinsOf()
      const { ownerId } = someResponse()
      const ids = ['resp_old', 'resp_older', 'resp_new']
      for (const responseId of ['resp_older', 'resp_old']) {
        await pins.keep({ ownerId, channelId: 'main', responseId, itemIds: [`${responseId}_item`] })
        await laterMillisecond()
      }
      const beforeMs = Date.now()
      await pins.keep({ ownerId, channelId: 'main', responseId: 'resp_new', itemIds: [] })
      expect(await pins.prune(beforeMs, 2)).toBe(2)
      expect([...(await pins.channelsOf(ownerId, ids)).keys()].sort()).toEqual(['resp_new', 'resp_old'])
      expect(await pins.prune(beforeMs, 100)).toBe(2)
      expect(await pins.prune(beforeMs, 100)).toBe(0)
      expect([...(await pins.channelsOf(ownerId, ids)).keys()]).toEqual(['resp_new'])
    })
  })
}
