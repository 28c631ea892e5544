import type { Socket } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { failureOf } from '../../test/support/failures.js'
import { newCall, targetOf, unusedPort } from '../../test/support/raw-upstream.js'
import { UpstreamSocketsLab } from '../../test/support/upstream-sockets-lab.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamTarget } from './upstream-client.js'

const lab = new UpstreamSocketsLab()
const { dial, rawTarget, socketServer } = lab

afterEach(() => lab.reset())

const secure = (target: UpstreamTarget): UpstreamTarget => ({
  ...target,
  origin: target.origin.replace('http:', 'https:'),
})

describe('A dial that fails', () => {
  it('because nobody listens was never sent', async () => {
    expect(await failureOf(dial(targetOf(await unusedPort())))).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'unsent', channelFault: true }, retryable: true },
    })
  })

  it.each<[string, (socket: Socket) => void]>([
    ['a reset', (socket) => socket.resetAndDestroy()],
    ['a polite close', (socket) => socket.end()],
    ['something that is not HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n\r\n')],
    [
      'a 101 that does not prove itself',
      (socket) => socket.write('HTTP/1.1 101 S\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'),
    ],
  ])('by %s is the fault of the channel, and closes', async (_name, answer) => {
    expect(await failureOf(dial(await rawTarget(answer)))).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'sent', channelFault: true } },
    })
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('by choosing another subprotocol than the one offered is the fault of the channel', async () => {
    const target = await socketServer()
    if (lab.server !== undefined) lab.server.options.handleProtocols = () => 'other'
    expect(await failureOf(dial(target, { subprotocol: 'realtime' }))).toMatchObject({ kind: 'upstream_failed' })
  })

  it('by silence after the connection is given up after the first-byte time', async () => {
    const target = await rawTarget(() => undefined, { firstByteMs: 50 })
    expect(await failureOf(dial(target))).toMatchObject({
      kind: 'upstream_timeout',
      details: { attempt: { phase: 'sent', channelFault: true } },
    })
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('by a TLS handshake without end is given up after the connect time, and nothing was sent', async () => {
    const target = secure(await rawTarget(() => undefined, { connectMs: 50 }))
    expect(await failureOf(dial(target))).toMatchObject({
      kind: 'upstream_timeout',
      details: { attempt: { phase: 'unsent', channelFault: true }, retryable: true },
    })
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('by the end of the total time is given up at once', async () => {
    const call = newCall()
    const target = await rawTarget(() => undefined)
    expect(await failureOf(dial(target, {}, call, 50))).toMatchObject({ kind: 'upstream_timeout' })
    expect(call.log.upstreamMs).toBeGreaterThan(40)
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('before it began, by a header that cannot be sent, leaves nothing behind', async () => {
    const target = await socketServer()
    await expect(dial(target, { headers: { authorization: 'a\nb' } })).rejects.toThrow('Invalid character')
    expect(lab.clients).toHaveLength(0)
  })
})

describe('A caller who leaves', () => {
  it('during the upgrade ends it at the socket of the upstream', async () => {
    const call = newCall()
    const target = await rawTarget(() => {
      call.departure.announce()
    })
    expect(await failureOf(dial(target, {}, call))).toMatchObject({ kind: 'caller_left' })
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it.each(['http', 'https'])('while the connection is made over %s sends nothing', async (protocol) => {
    const call: Call = newCall()
    let heads = 0
    const target = await rawTarget(() => heads++)
    const dialling = failureOf(dial(protocol === 'https' ? secure(target) : target, {}, call))
    call.departure.announce()
    expect(await dialling).toMatchObject({ kind: 'caller_left', details: {} })
    await eventually(() => lab.upstream?.sockets.size === 0)
    expect(heads).toBe(0)
  })

  it('before anything was done costs no connection', async () => {
    const call = newCall()
    call.departure.announce()
    const target = await rawTarget(() => undefined)
    expect(() => dial(target, {}, call)).toThrow('The caller closed the connection.')
    expect(lab.upstream?.accepted).toBe(0)
  })
})
