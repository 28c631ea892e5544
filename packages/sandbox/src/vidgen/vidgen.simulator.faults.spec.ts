import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { DAY_MS, HEADERS, refused, TEXT, VidgenSimulatorLab } from '../../test/task-simulator-labs.js'

const lab = new VidgenSimulatorLab()
const { create, post, read } = lab

beforeEach(() => lab.startAnew())
afterEach(() => lab.close())

describe('a word in a prompt', () => {
  it.each([
    ['#1301', 400, 1301],
    ['#1303', 429, 1303],
    ['#1102', 429, 1102],
    ['#1304', 429, 1304],
    ['#5000', 500, 5000],
    ['#5001', 503, 5001],
    ['#5002', 504, 5002],
    ['#429', 429, 1302],
    ['#quota', 429, 1102],
    ['#503', 503, 5001],
  ])('%s is refused with %i and %i, and makes no task', async (word, status, code) => {
    expect(await refused(await post({ prompt: `${word} a red kite` }))).toEqual([status, code])
    expect(lab.simulator.creates).toHaveLength(0)
  })

  it('may stand anywhere when it is one of this upstream', async () => {
    expect(await refused(await post({ prompt: 'a kite #1301' }))).toEqual([400, 1301])
  })

  it('#html answers a page with 502', async () => {
    const response = await post({ prompt: '#html' })
    expect([response.status, response.headers.get('content-type')]).toEqual([502, 'text/html'])
  })

  it('#fail makes a task that fails, with the words of a moderation', async () => {
    const id = await create({ prompt: 'a kite #fail' })
    lab.clock.advance(6000)
    const task = await read(id)
    expect(task).toMatchObject({ task_status: 'failed', task_status_msg: expect.stringMatching(/risk control/) })
    expect(task).not.toHaveProperty('task_result')
  })

  it('#stuck makes a task that never ends', async () => {
    const id = await create({ prompt: '#stuck' })
    lab.clock.advance(100 * DAY_MS)
    lab.simulator.advance(id)
    expect(await read(id)).toMatchObject({ task_status: 'processing' })
  })

  it('#slow answers a create in pieces', async () => {
    const started = performance.now()
    await create({ prompt: '#slow' })
    expect(performance.now() - started).toBeGreaterThan(300)
  })

  it('#lost makes a task and resets the connection', async () => {
    await expect(post({ prompt: '#lost', external_task_id: 'e-1' })).rejects.toThrow()
    expect(await read('e-1')).toMatchObject({ task_status: 'submitted' })
  })

  it('#lost5000 makes a task and answers 5000', async () => {
    expect(await refused(await post({ prompt: '#lost5000', external_task_id: 'e-1' }))).toEqual([500, 5000])
    expect(await read('e-1')).toMatchObject({ task_status: 'submitted' })
  })

  it('#cut makes a task and breaks its answer off, #reset makes none', async () => {
    await expect(create({ prompt: '#cut', external_task_id: 'e-1' })).rejects.toThrow()
    await expect(post({ prompt: '#reset' })).rejects.toThrow()
    expect(lab.simulator.creates.map(({ externalTaskId }) => externalTaskId)).toEqual(['e-1'])
  })
})

describe('a queued fault', () => {
  it('befalls a query as well', async () => {
    const id = await create()
    for (const fault of ['503', 'errorframe', 'html'] as const) lab.simulator.queueFault(fault)
    const status = async (): Promise<number> =>
      (await fetch(`${lab.simulator.url}${TEXT}/${id}`, { headers: HEADERS })).status
    expect([await status(), await status(), await status(), await status()]).toEqual([503, 500, 200, 200])
  })
})
