import { describe, expect, it } from '@jest/globals'
import { CollectedUsage } from '../../test/support/collected-usage.js'
import { newCall } from '../../test/support/raw-upstream.js'
import type { Caller } from '../core/caller.js'
import { GatewayError } from '../core/gateway-error.js'
import type { Call } from '../core/request-context.js'
import type { CallContext } from '../providers/call-context.js'
import type { ImageProvider, UpstreamImageTask } from '../providers/image.contract.js'
import type { PinnedRoute, ProviderRouter } from '../routing/router.js'
import { EndedImages } from './ended-images.js'
import { ImageChannels } from './image-tasks.js'
import { KnownChannels } from './known-channels.js'

const TASK: UpstreamImageTask = { status: 'SUCCESS', progress: '', imageUrl: '', isTerminal: true, object: '{}' }
const FAILED = new GatewayError('upstream_failed', 'No.')
const REFUSED = new GatewayError('invalid_request', 'Not so.')

type Reply = UpstreamImageTask | GatewayError | undefined

/** Channels by name and what each replies, asked in this order. */
function channelsOf(replies: Readonly<Record<string, Reply>>) {
  const asked: string[] = []
  const routes = Object.keys(replies).map((channelId): PinnedRoute<ImageProvider> => {
    const answer = () => {
      asked.push(channelId)
      const reply = replies[channelId]
      return reply instanceof GatewayError ? Promise.reject(reply) : Promise.resolve(reply)
    }
    return {
      channelId,
      options: {},
      modelClass: 'image',
      attempt: (_call, _policy, run) => run({ fetch: answer, seed: answer }, {} as CallContext),
    }
  })
  const router: Pick<ProviderRouter, 'imageChannels'> = { imageChannels: () => routes }
  const usage = new CollectedUsage()
  const channels = new ImageChannels(router as ProviderRouter, new KnownChannels(), new EndedImages(usage))
  const ask = (id = '1', call: Call = newCall()) =>
    channels.ask(id, call, (provider, context) => provider.fetch(id, context))
  return { ask, asked, usage }
}

describe('A task', () => {
  it('is looked for on one channel after the other, and then where it was found', async () => {
    const { ask, asked } = channelsOf({ a: undefined, b: FAILED, c: TASK, d: TASK })
    expect(await ask()).toBe(TASK)
    expect(asked.splice(0)).toEqual(['a', 'b', 'c'])
    expect(await ask()).toBe(TASK)
    expect(asked.splice(0)).toEqual(['c'])
    expect(await ask('2')).toBe(TASK)
    expect(asked).toEqual(['a', 'b', 'c'])
  })

  it('is looked for everywhere again when it is gone from where it was', async () => {
    const replies: Record<string, Reply> = { a: undefined, b: TASK, c: undefined }
    const { ask, asked } = channelsOf(replies)
    await ask()
    asked.length = 0
    Object.assign(replies, { b: undefined, c: TASK })
    expect(await ask()).toBe(TASK)
    expect(asked).toEqual(['b', 'a', 'c'])
  })

  it('that no channel knows is not found', async () => {
    await expect(channelsOf({ a: undefined, b: undefined }).ask()).rejects.toMatchObject({ kind: 'not_found' })
    await expect(channelsOf({}).ask()).rejects.toMatchObject({ kind: 'not_found' })
  })

  it.each([
    [{ a: FAILED, b: undefined }, FAILED],
    [{ a: undefined, b: FAILED }, FAILED],
    [{ a: undefined, b: REFUSED, c: FAILED }, REFUSED],
  ])('that is known to none may live where the question failed', async (replies, failure) => {
    const { ask, asked } = channelsOf(replies)
    await expect(ask()).rejects.toBe(failure)
    expect(asked).toEqual(Object.keys(replies))
  })

  it('is looked for no further once the caller has left', async () => {
    const call = newCall()
    const { ask, asked } = channelsOf({ a: FAILED, b: TASK })
    const answer = ask('1', call)
    call.departure.announce()
    await expect(answer).rejects.toMatchObject({ kind: 'caller_left' })
    expect(asked).toEqual(['a'])
  })

  it('is nothing to a key of the caller’s own that no channel passes on', async () => {
    const call = newCall()
    const stranger: Caller = { keyId: 'caller', bearer: 'own' }
    call.caller = stranger
    await expect(channelsOf({}).ask('1', call)).rejects.toMatchObject({ kind: 'unauthorized' })
  })
})
