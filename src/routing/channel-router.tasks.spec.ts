import { describe, expect, it } from '@jest/globals'
import { newCall } from '../../test/support/raw-upstream.js'
import { channelEntry, routingOf, type TestRouting } from '../../test/support/routing.js'
import type { Caller } from '../core/caller.js'
import { GatewayError } from '../core/gateway-error.js'
import type { CallContext } from '../providers/call-context.js'
import type { PinnedRoute } from './router.js'

const CALLER: Caller = { keyId: 'test' }
const STRANGER: Caller = { keyId: 'caller', bearer: 'own-bearer' }

describe('A model of video', () => {
  it('is asked for by the upstream’s own name, on another channel when the first refuses', async () => {
    const { router } = routingOf({
      channels: [
        channelEntry('first', { provider: 'vidgen', modelMap: { 'vidgen-v1-6': 'upstream-v1-6' } }),
        channelEntry('second', { provider: 'vidgen', priority: 1 }),
        channelEntry('other', { provider: 'vidgen', models: ['vidgen-v3'], priority: 2 }),
      ],
    })
    const asked: string[] = []
    const refused = new GatewayError('upstream_failed', 'No.', { attempt: { phase: 'answered', channelFault: true } })
    const attempt = router
      .video('vidgen-v1-6', CALLER)
      .attempt(newCall(), { repeatableOnceSent: false }, (_provider, { channelId, upstreamModel }) => {
        asked.push(`${channelId} ${upstreamModel}`)
        return Promise.reject(refused)
      })
    await expect(attempt).rejects.toBe(refused)
    expect(asked).toEqual(['first upstream-v1-6', 'second vidgen-v1-6'])
  })

  it('is not asked for twice when nobody knows whether the first has made a task', async () => {
    const { router } = routingOf({
      channels: [channelEntry('a', { provider: 'vidgen' }), channelEntry('b', { provider: 'vidgen' })],
    })
    let attempts = 0
    const lost = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent', channelFault: true } })
    const attempt = router.video('vidgen-v1-6', CALLER).attempt(newCall(), { repeatableOnceSent: false }, () => {
      attempts++
      return Promise.reject(lost)
    })
    await expect(attempt).rejects.toBe(lost)
    expect(attempts).toBe(1)
  })
})

describe.each([
  ['video', 'vidgen', 'imggen'],
  ['image', 'imggen', 'vidgen'],
] as const)('The channels of %s tasks', (capability, provider, other) => {
  const channelsOf = ({ router }: TestRouting, caller = CALLER): readonly PinnedRoute<unknown>[] =>
    capability === 'video' ? router.videoChannels(caller) : router.imageChannels(caller)
  const idsFor = (routing: TestRouting, caller = CALLER): string[] =>
    channelsOf(routing, caller).map(({ channelId }) => channelId)
  const own = (id: string, changes: object = {}) => channelEntry(id, { provider, ...changes })

  it('are those that can, best first, whatever models they name and the key may use', () => {
    const routing = routingOf({
      channels: [
        channelEntry('p1'),
        channelEntry('other', { provider: other }),
        own('later', { priority: 1, models: ['some-model'] }),
        own('first', { options: { pathPrefix: '/x' } }),
      ],
    })
    expect(idsFor(routing)).toEqual(['first', 'later'])
    expect(idsFor(routing, { keyId: 'limited', models: ['gpt-*'] })).toEqual(['first', 'later'])
    expect(channelsOf(routing)[0]).toMatchObject({
      modelClass: capability,
      options: expect.objectContaining({ pathPrefix: '/x' }),
    })
    routing.health.open('first', 5000)
    expect(idsFor(routing)).toEqual(['later', 'first'])
  })

  it('are of the sort that takes the caller’s key, and none where there is no such channel', () => {
    const routing = routingOf({ channels: [own('own'), own('passing', { credentials: 'caller' })] })
    expect(idsFor(routing)).toEqual(['own'])
    expect(idsFor(routing, STRANGER)).toEqual(['passing'])
    expect(idsFor(routingOf({ channels: [own('own')] }), STRANGER)).toEqual([])
    expect(idsFor(routingOf({ channels: [channelEntry('p1')] }))).toEqual([])
  })

  it('are asked one by one: a failure is the channel’s and goes to no other', async () => {
    const routing = routingOf({ channels: [own('first'), own('second', { priority: 1 })] })
    const [first] = channelsOf(routing)
    const failure = new GatewayError('upstream_failed', 'No.', {
      attempt: { phase: 'answered', channelFault: true },
      retryable: false,
    })
    const asked: CallContext[] = []
    const attempt = first?.attempt(newCall(), { repeatableOnceSent: true }, (_provider, context) => {
      asked.push(context)
      return Promise.reject(failure)
    })
    await expect(attempt).rejects.toBe(failure)
    expect(asked).toMatchObject([{ channelId: 'first', credentials: 'secret-of-first', callersKey: false }])
    expect(routing.health.stateOf('first')).toBe('open')
    expect(idsFor(routing)).toEqual(['second', 'first'])
  })

  it('stay marked while they only answer questions: a dead account does that, too', async () => {
    const routing = routingOf({ channels: [own('first')] })
    routing.health.open('first', 60_000)
    const [first] = channelsOf(routing)
    await first?.attempt(newCall(), { repeatableOnceSent: true }, () => Promise.resolve('an answer'))
    expect(routing.health.stateOf('first')).toBe('open')
  })
})
