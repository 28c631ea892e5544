import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { GuardedLab, redirectTo, SOON_MS, textOf } from '../../test/support/outbound-labs.js'
import { GENEROUS_TIMEOUTS, newCall } from '../../test/support/raw-upstream.js'

let lab: GuardedLab
beforeEach(async () => {
  lab = await GuardedLab.start()
})
afterEach(async () => {
  await lab.close()
})

describe('A fetch', () => {
  const silent = (socket: Socket): void => {
    lab.heads.push(`silent ${socket.remotePort ?? ''}`)
  }

  it(
    'ends with its deadline, over all hops, and leaves no connection behind',
    async () => {
      lab.answers['/from'] = redirectTo('/to')
      lab.answers['/to'] = silent
      await expect(lab.get('/from', { deadlineAtMs: performance.now() + 200 })).rejects.toMatchObject({
        kind: 'upstream_timeout',
        message: expect.stringContaining('total time'),
      })
      for (const socket of lab.upstream.sockets) await once(socket, 'close')
    },
    SOON_MS,
  )

  it(
    'does not wait for a name longer than for a connection',
    async () => {
      lab.resolve = () => new Promise(() => undefined)
      const timeouts = { ...GENEROUS_TIMEOUTS, connectMs: 20 }
      await expect(lab.fetchUrl('http://slow.test/', { timeouts })).rejects.toMatchObject({
        kind: 'upstream_timeout',
        details: { attempt: { phase: 'unsent' } },
      })
    },
    SOON_MS,
  )

  it(
    'does not wait longer than it may for the head, nor for the rest',
    async () => {
      lab.answers['/head'] = silent
      lab.answers['/rest'] = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab')
      const timeouts = { ...GENEROUS_TIMEOUTS, firstByteMs: 50, idleMs: 50 }
      await expect(lab.get('/head', { timeouts })).rejects.toMatchObject({
        kind: 'upstream_timeout',
        message: expect.stringContaining('did not answer in time'),
      })
      await expect(lab.get('/rest', { timeouts }).then(textOf)).rejects.toMatchObject({
        kind: 'upstream_timeout',
        message: expect.stringContaining('in the middle'),
      })
    },
    SOON_MS,
  )

  it(
    'is given up when the caller leaves, in whatever phase',
    async () => {
      const call = newCall()
      lab.answers['/'] = () => {
        call.departure.announce()
      }
      await expect(lab.get('/', { call })).rejects.toMatchObject({ kind: 'caller_left' })
      for (const socket of lab.upstream.sockets) await once(socket, 'close')
      await expect(lab.get('/', { call })).rejects.toMatchObject({ kind: 'caller_left' })
      expect(lab.upstream.accepted).toBe(1)

      const early = newCall()
      lab.resolve = () => {
        early.departure.announce()
        return new Promise(() => undefined)
      }
      await expect(lab.fetchUrl('http://slow.test/', { call: early })).rejects.toMatchObject({ kind: 'caller_left' })
    },
    SOON_MS,
  )

  it('fails when the body grows beyond what was asked for', async () => {
    lab.answers['/'] = 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n12345'
    await expect(lab.get('/', { maximumBytes: 4 }).then(textOf)).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(lab.upstream.accepted).toBe(1)
  })

  it('ends at shutdown', async () => {
    lab.answers['/'] = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
    const body = textOf(await lab.get('/'))
    const failed = expect(body).rejects.toMatchObject({ kind: 'upstream_failed' })
    await lab.client.onApplicationShutdown()
    await failed
  })

  it('of a name nobody knows fails as a connection does', async () => {
    lab.resolve = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
    await expect(lab.fetchUrl('http://unknown.test/')).rejects.toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'unsent' } },
    })
  })
})
