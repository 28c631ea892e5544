import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { GuardedLab, redirectTo, refused, SOON_MS, textOf } from '../../test/support/outbound-labs.js'
import { GENEROUS_TIMEOUTS, newCall } from '../../test/support/raw-upstream.js'
import { TooManyRedirects } from './ssrf-guard.js'

let lab: GuardedLab
beforeEach(async () => {
  lab = await GuardedLab.start()
})
afterEach(async () => {
  await lab.close()
})

describe('A redirect', () => {
  it.each([301, 302, 303, 307, 308])('of status %i is followed, as its target stands', async (status) => {
    lab.answers['/from'] = redirectTo('to?x=y', status)
    const response = await lab.get('/from')
    expect([response.status, await textOf(response)]).toEqual([200, 'ok'])
    expect(lab.heads[1]).toMatch(/^GET \/to\?x=y HTTP/)
  })

  it.each([
    'http://10.0.0.1/',
    'http://localhost:PORT/',
    'http://rebound.test:PORT/',
    'http://[::1]:PORT/',
    'file:///x',
  ])('to what may not be fetched is refused: %s', async (location) => {
    lab.answers['/from'] = redirectTo(location.replace('PORT', String(lab.upstream.port)))
    await expect(lab.get('/from')).rejects.toEqual(refused)
    expect(lab.upstream.accepted).toBe(1)
  })

  it('is judged by what its host is then, not by what it was', async () => {
    const { port } = lab.upstream
    lab.answers['/from'] = (socket) => {
      lab.allowed = [`127.0.0.1:${port}`]
      void lab.store.reload().then(() => socket.write(redirectTo('/to')))
    }
    await expect(lab.get('/from', {}, 'files.test')).rejects.toEqual(refused)
    expect(lab.resolved).toEqual(['files.test', 'files.test'])
    expect(lab.heads).toHaveLength(1)
  })

  it('shows in the answer, which says where it came from', async () => {
    lab.answers['/from'] = redirectTo(`http://files.test:${lab.upstream.port}/to?x=y`)
    const { url, body } = await lab.client.get(`HTTP://127.0.0.1:${lab.upstream.port}/from#part`, {
      call: newCall(),
      deadlineAtMs: performance.now() + 20_000,
      timeouts: GENEROUS_TIMEOUTS,
    })
    body.cancel()
    expect(url).toBe(`http://files.test:${lab.upstream.port}/to?x=y`)
  })

  it('takes credentials along on its own origin only, and a way back does not restore them', async () => {
    lab.answers['/a'] = redirectTo('/b')
    lab.answers['/b'] = redirectTo(`http://files.test:${lab.upstream.port}/c`)
    lab.answers['/c'] = redirectTo(`http://127.0.0.1:${lab.upstream.port}/d`)
    lab.answers['/d'] = `HTTP/1.1 200 OK\r\ncontent-length: 2\r\nset-cookie: a=b\r\n\r\nok`
    await textOf(await lab.get('/a', { headers: ['authorization', 'Bearer k', 'accept', 'x/y'] }))
    expect(lab.heads.map((head) => head.includes('authorization: Bearer k'))).toEqual([true, true, false, false])
    expect(lab.heads.map((head) => head.includes('accept: x/y'))).toEqual([true, true, true, true])
  })

  it('brings no cookies along', async () => {
    lab.answers['/a'] = redirectTo('/b').replace('location', 'set-cookie: a=b\r\nlocation')
    await textOf(await lab.get('/a'))
    expect(lab.heads[1]).not.toMatch(/cookie/i)
  })

  it('is the last one after three, or after as many as the request says', async () => {
    lab.answers['/loop'] = redirectTo('/loop')
    await expect(lab.get('/loop')).rejects.toEqual(refused)
    expect(lab.heads).toHaveLength(4)
    const tooMany = await lab.get('/loop', { maximumRedirects: 0 }).catch((error: unknown) => error)
    expect(tooMany).toMatchObject({ details: { cause: expect.any(TooManyRedirects) } })
    expect(lab.heads).toHaveLength(5)
    lab.answers['/1'] = redirectTo('/2')
    lab.answers['/2'] = redirectTo('/3')
    lab.answers['/3'] = redirectTo('/4')
    expect((await lab.get('/1')).status).toBe(200)
  })

  it(
    'leaves no connection behind, even if its own answer never ends',
    async () => {
      let first: Socket | undefined
      lab.answers['/from'] = (socket) => {
        first = socket
        socket.write('HTTP/1.1 302 Found\r\nlocation: /to\r\ncontent-length: 9\r\n\r\n')
      }
      expect(await textOf(await lab.get('/from'))).toBe('ok')
      if (first?.destroyed === false) await once(first, 'close')
      expect(first?.destroyed).toBe(true)
    },
    SOON_MS,
  )
})
