import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ImggenSimulatorLab, KEY } from '../../test/imggen-simulator-lab.js'
import { startImggenSimulator } from './imggen.simulator.js'

const lab = new ImggenSimulatorLab()
const { get, post, shown } = lab

beforeEach(() => lab.startAnew())
afterEach(() => lab.close())

describe('the secret', () => {
  it('is demanded on every route, in its header, and refused without a word', async () => {
    for (const headers of [{}, { 'mj-api-secret': 'other' }, { 'mj-api-secret': 'Bearer secret' }]) {
      const response = await fetch(`${lab.simulator.url}/mj/task/1/fetch`, { headers })
      expect([response.status, await response.text()]).toEqual([401, ''])
    }
    expect((await fetch(`${lab.simulator.url}/mj/submit/imagine`, { method: 'POST', body: '{}' })).status).toBe(401)
  })

  it('is not looked at where none was set', async () => {
    await lab.simulator.close()
    lab.simulator = await startImggenSimulator({ clock: lab.clock })
    expect((await fetch(`${lab.simulator.url}/mj/task/${lab.simulator.submit('a kite')}/fetch`)).status).toBe(200)
  })

  it('is the only credential a relay may send', async () => {
    await fetch(`${lab.simulator.url}/mj/task/1/fetch`, {
      headers: { ...KEY, authorization: 'Bearer k', via: '1.1 x' },
    })
    expect(lab.simulator.violations).toEqual(['forwarded header: via', 'forwarded header: authorization'])
  })
})

describe('a submit', () => {
  it('answers code 1 and an id of time and three digits, under every prefix', async () => {
    for (const prefix of ['/mj', '/mj-fast/mj', '/mj-turbo/mj', '/mj-relax/mj']) {
      const answer = await post(`${prefix}/submit/imagine`, { prompt: 'a red kite', state: 'mine' })
      expect(answer).toEqual({
        code: 1,
        description: 'Submit success',
        result: expect.stringMatching(/^1750000000000\d{3}$/),
        properties: {},
      })
      expect(await shown(answer.result)).toMatchObject({ id: answer.result, prompt: 'a red kite', state: 'mine' })
    }
  })

  it.each([
    ['no prompt', {}, 'prompt must not be empty'],
    ['a blank prompt', { prompt: ' ' }, 'prompt must not be empty'],
    ['a long state', { prompt: 'x', state: 'a'.repeat(256) }, 'state must have at most 255 characters'],
    ['a long hook', { prompt: 'x', notifyHook: 'a'.repeat(2001) }, 'notifyHook must have at most 2000 characters'],
  ])('answers code 4 to %s', async (_, body, description) => {
    expect(await post('/mj/submit/imagine', body)).toMatchObject({ code: 4, description, result: null })
  })

  it.each([
    ['#banned', 24, { promptEn: 'a kite #banned', bannedWord: 'banned' }],
    ['#full', 23, {}],
  ])('with %s answers code %i and makes no task', async (word, code, properties) => {
    const answer = await post('/mj/submit/imagine', { prompt: `a kite ${word}` })
    expect(answer).toMatchObject({ code, result: null, properties })
  })

  it('with #queue answers code 22 and makes a task', async () => {
    const answer = await post('/mj/submit/imagine', { prompt: 'a kite #queue' })
    expect(answer).toMatchObject({ code: 22, properties: { numberOfQueues: 1 } })
    expect(await shown(answer.result)).toMatchObject({ status: 'NOT_START' })
  })

  it('with #modal answers code 21, and the task waits for its window', async () => {
    const { code, result: id } = await post('/mj/submit/imagine', { prompt: 'a kite #modal' })
    expect(code).toBe(21)
    lab.clock.advance(100_000)
    expect(await shown(id)).toMatchObject({ status: 'MODAL' })
    expect(await post('/mj/submit/modal', { taskId: id })).toMatchObject({ code: 1, result: id })
    expect(await post('/mj/submit/modal', { taskId: id })).toMatchObject({ code: 4 })
    expect(await post('/mj/submit/modal', { taskId: '1' })).toMatchObject({ code: 3 })
    lab.clock.advance(5000)
    expect(await shown(id)).toMatchObject({ status: 'SUCCESS' })
  })
})

describe('other routes', () => {
  it('are 404', async () => {
    for (const path of ['/task/1/fetch', '/mj/task/1/cancel', '/mj/task/fetch', '/mj']) {
      expect((await get(path)).status).toBe(404)
    }
    const init = { method: 'POST', headers: KEY, body: '{}' }
    expect((await fetch(`${lab.simulator.url}/mj/submit/blend`, init)).status).toBe(404)
  })
})
