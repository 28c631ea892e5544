import { afterEach, describe, expect, it } from '@jest/globals'
import { good, type P3Answer, P3SimulatorLab } from '../../test/p3-simulator-lab.js'
import { startP3Simulator } from './p3.simulator.js'

const lab = new P3SimulatorLab()
const { ask, start } = lab

afterEach(() => lab.close())

describe('the route', () => {
  it('is one path, by POST', async () => {
    const { url } = await start()
    for (const [path, method] of [
      ['/v1/t2a_v2', 'GET'],
      ['/v1/t2a', 'POST'],
    ] as const) {
      const response = await fetch(url + path, { method })
      expect([response.status, await response.text()]).toEqual([404, '404 page not found'])
    }
  })

  it('takes any group or none when the simulator has none', async () => {
    await start()
    for (const query of ['', '?GroupId=1234']) {
      expect((await ask(good, { query })).base_resp.status_code).toBe(0)
    }
    expect(lab.simulator?.violations).toEqual([])
  })

  it('wants the right group when the simulator has one', async () => {
    await start({ groupId: '1234' })
    expect((await ask(good, { query: '?GroupId=1234' })).base_resp.status_code).toBe(0)
    for (const query of ['', '?GroupId=', '?GroupId=12345']) {
      expect((await ask(good, { query })).base_resp.status_code).toBe(1004)
    }
  })

  it('records other and repeated query parameters', async () => {
    await start()
    await ask(good, { query: '?GroupId=1&GroupId=1&model=x' })
    expect(lab.simulator?.violations).toEqual(['unknown query: model', 'repeated query: GroupId'])
  })
})

describe('a bad key', () => {
  it('is refused with HTTP 200 and 1004, and without data', async () => {
    await start()
    const answer = await ask(good, { key: 'other' })
    expect(answer).toEqual({
      data: null,
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      base_resp: { status_code: 1004, status_msg: 'login fail: token does not match group' },
    })
  })

  it('is refused with 2049 when the simulator was started so', async () => {
    await start({ badKeyCode: 2049 })
    expect((await ask(good, { key: 'other' })).base_resp).toEqual({ status_code: 2049, status_msg: 'invalid api key' })
  })

  it('is only `bad` when no key was named, and a missing one is always refused', async () => {
    const { url } = (lab.simulator = await startP3Simulator())
    expect((await ask(good, { key: 'anything' })).base_resp.status_code).toBe(0)
    expect((await ask(good, { key: 'bad' })).base_resp.status_code).toBe(1004)
    const response = await fetch(`${url}/v1/t2a_v2`, { method: 'POST', body: JSON.stringify(good) })
    expect((await response.json()) as P3Answer).toMatchObject({ base_resp: { status_code: 1004 } })
  })
})
