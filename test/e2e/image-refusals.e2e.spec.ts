import { describe, expect, it } from '@jest/globals'
import { TEST_KEY } from '../support/gateway.js'
import {
  askForImage,
  imagePath,
  IMGGEN_SECRET,
  type ImggenGateway,
  type ImggenGatewayOptions,
  startImggenGateway,
} from '../support/imggen-gateway.js'
import { withLab } from '../support/provider-gateways.js'

const inLab = (options: ImggenGatewayOptions, run: (lab: ImggenGateway) => Promise<void>): Promise<void> =>
  withLab(startImggenGateway(options), async (lab) => {
    await run(lab)
    expect([...lab.simulator.violations, ...lab.second.violations]).toEqual([])
    expect(lab.gateway.logText()).not.toContain(IMGGEN_SECRET)
  })

describe('An upstream’s failure', () => {
  it.each([
    ['html', 502, 5000],
    ['malformed', 502, 5000],
    ['cut', 502, 5000],
    ['cleancut', 502, 5000],
    ['errorframe', 502, 5000],
    ['500', 502, 5000],
    ['503', 502, 5000],
    ['402', 502, 5000],
    ['403', 502, 5000],
    ['400', 400, 1201],
    ['404', 404, 1203],
    ['empty', 404, 1203],
  ] as const)('%s is %i with the code %i', (fault, status, code) =>
    inLab({}, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite')
      simulator.queueFault(fault)
      const answer = await askForImage(gateway, imagePath(id))
      expect(answer).toMatchObject({ status, body: { code, description: answer.body['message'] } })
      expect(Object.keys(answer.body).sort()).toEqual(['code', 'description', 'message', 'request_id'])
    }),
  )

  it('to accept the channel’s secret is never shown as the caller’s', () =>
    inLab({ channel: { credentials: `${IMGGEN_SECRET}-old` } }, async ({ gateway, simulator }) => {
      const { status, headers, body } = await askForImage(gateway, imagePath(simulator.submit('a kite')))
      expect([status, body['code'], headers.get('x-should-retry')]).toEqual([502, 5000, 'false'])
    }))

  it('to answer does not outlive its caller', () =>
    inLab({}, async ({ gateway, simulator }) => {
      simulator.queueFault('hang')
      const leaving = new AbortController()
      const aborted = simulator.nextAbort()
      const answer = fetch(gateway.url + imagePath('1'), {
        headers: { authorization: `Bearer ${TEST_KEY}` },
        signal: leaving.signal,
      })
      await simulator.nextRequest()
      leaving.abort()
      await expect(answer).rejects.toThrow()
      await aborted
    }))
})

describe('A request', () => {
  it.each(['a.b', 'a%20b', 'a%2Fb', '..a', 'a'.repeat(65), 'é', '%25'])('for the task %s is refused', (id) =>
    inLab({}, async ({ gateway, simulator }) => {
      for (const question of ['fetch', 'image-seed', 'events']) {
        const { status, body } = await askForImage(gateway, imagePath(id, question))
        expect(status).toBe(400)
        expect(body).toMatchObject({ code: 1201, description: expect.stringContaining("'id'") })
      }
      expect(simulator.requests).toEqual([])
    }),
  )

  it.each(['a', 'a'.repeat(64), 'A-b_9'])('may be for the task %s', (id) =>
    inLab({}, async ({ gateway, simulator }) => {
      simulator.submit('a kite', { id })
      expect(await askForImage(gateway, imagePath(id))).toMatchObject({ status: 200, body: { id } })
    }),
  )

  it('needs a key', () =>
    inLab({}, async ({ gateway, simulator }) => {
      expect(await askForImage(gateway, imagePath('a.b'), 'wrong')).toMatchObject({ status: 401, body: { code: 1000 } })
      const missing = await fetch(gateway.url + imagePath('1'))
      expect([missing.status, await missing.json()]).toMatchObject([
        401,
        { code: 1001, description: expect.any(String) },
      ])
      expect(simulator.requests).toEqual([])
    }))

  it('by another method is 405, and to another path 404, in the dialect of images', () =>
    inLab({}, async ({ gateway }) => {
      const headers = { authorization: `Bearer ${TEST_KEY}` }
      const posted = await fetch(gateway.url + imagePath('1'), { method: 'POST', headers })
      expect([posted.status, posted.headers.get('allow')]).toEqual([405, expect.stringContaining('GET')])
      expect(await posted.json()).toMatchObject({ code: 1202, description: expect.any(String) })
      const elsewhere = await askForImage(gateway, '/imggen/task/1')
      expect(elsewhere).toMatchObject({ status: 404, body: { code: 1203, description: expect.any(String) } })
    }))

  it('with a key of the caller’s own is the upstream’s to judge', () =>
    inLab({ channel: { credentials: 'caller' } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite')
      expect((await askForImage(gateway, imagePath(id), IMGGEN_SECRET)).status).toBe(200)
      expect(await askForImage(gateway, imagePath(id), 'theirs')).toMatchObject({ status: 401, body: { code: 1000 } })
      // A key of the gateway's own is not passed on.
      expect(await askForImage(gateway, imagePath(id))).toMatchObject({ status: 404 })
      expect(simulator.requests).toHaveLength(2)
    }))
})
