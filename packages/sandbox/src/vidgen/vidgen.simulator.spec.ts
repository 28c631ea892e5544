import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { DAY_MS, HEADERS, IMAGES, TEXT, type VidgenAnswer, VidgenSimulatorLab } from '../../test/task-simulator-labs.js'

const lab = new VidgenSimulatorLab()
const { create, get, read, start } = lab

beforeEach(() => lab.startAnew())
afterEach(() => lab.close())

describe('a task', () => {
  it('proceeds by the clock: submitted, processing, succeed', async () => {
    const id = await create()
    expect(await read(id)).toMatchObject({ task_status: 'submitted' })
    lab.clock.advance(1999)
    expect(await read(id)).toMatchObject({ task_status: 'submitted', updated_at: 1_750_000_000_000 })
    lab.clock.advance(1)
    expect(await read(id)).toMatchObject({ task_status: 'processing', updated_at: 1_750_000_002_000 })
    lab.clock.advance(4000)
    expect(await read(id)).toMatchObject({ task_status: 'succeed', updated_at: 1_750_000_006_000 })
  })

  it('has no result before its end, then the whole one, with a field nobody documented', async () => {
    const id = await create({ external_task_id: 'e-1', mode: 'pro', duration: '10' })
    expect(await read(id)).not.toHaveProperty('task_result')
    lab.clock.advance(6000)
    const text = await (await fetch(`${lab.simulator.url}${TEXT}/${id}`, { headers: HEADERS })).text()
    // A number no double can hold.
    expect(text).toContain('"trace_number":9223372036854775807}')
    expect((JSON.parse(text) as VidgenAnswer).data).toMatchObject({
      task_id: id,
      task_status: 'succeed',
      task_status_msg: '',
      task_info: { external_task_id: 'e-1' },
      task_result: { videos: [{ id: `${id}-0`, url: `${lab.simulator.url}/media/${id}.mp4`, duration: '10.1' }] },
      watermark_info: { enabled: false },
      final_unit_deduction: '7',
      created_at: 1_750_000_000_000,
      updated_at: 1_750_000_006_000,
    })
    expect(text).not.toContain('watermark_url')
  })

  it('can be read by its external id, under its own kind only', async () => {
    const id = await create({ external_task_id: '0123456789ab.order:77 ä' })
    expect(await read(encodeURIComponent('0123456789ab.order:77 ä'))).toMatchObject({ task_id: id })
    expect(await get(`${IMAGES}/${id}`)).toMatchObject({ code: 1203 })
    expect(await get(`${TEXT}/unknown`)).toEqual({
      code: 1203,
      message: expect.any(String),
      request_id: expect.any(String),
    })
    expect(await get(`${TEXT}/%ff`)).toMatchObject({ code: 1200 })
  })

  it('moves by hand alone when a test wants it so', async () => {
    await lab.simulator.close()
    await start({ taskMs: 'manual' })
    const [first, second] = [await create({ external_task_id: 'one' }), await create()]
    lab.clock.advance(DAY_MS)
    lab.simulator.advance('one')
    expect([await read(first), await read(second)]).toMatchObject([
      { task_status: 'processing' },
      { task_status: 'submitted' },
    ])
    lab.simulator.advance()
    expect([await read(first), await read(second)]).toMatchObject([
      { task_status: 'succeed' },
      { task_status: 'processing' },
    ])
    lab.simulator.settle(second, 'failed')
    expect(await read(second)).toMatchObject({ task_status: 'failed', final_unit_deduction: '0' })
    lab.simulator.advance()
    expect(await read(first)).toMatchObject({ task_status: 'succeed' })
    lab.simulator.show(first, 'processing')
    expect(await read(first)).toMatchObject({ task_status: 'processing' })
    lab.simulator.forget(first)
    expect(await get(`${TEXT}/${first}`)).toMatchObject({ code: 1203 })
    expect(() => {
      lab.simulator.advance(first)
    }).toThrow(/no task/)
    expect(lab.simulator.creates).toHaveLength(2)
  })
})

describe('a list', () => {
  it('holds the tasks of its kind, newest first, page by page', async () => {
    const ids: string[] = []
    for (let number = 0; number < 5; number += 1) ids.unshift(await create())
    await create({ image_list: [{ image: 'https://example.com/a.png' }] }, IMAGES)
    const page = async (query: string): Promise<string[]> =>
      ((await get(TEXT + query)).data as { task_id: string }[]).map(({ task_id }) => task_id)
    expect(await page('')).toEqual(ids)
    expect(await page('?pageNum=1&pageSize=2')).toEqual(ids.slice(0, 2))
    expect(await page('?pageNum=3&pageSize=2')).toEqual(ids.slice(4))
    expect(await page('?pageNum=1000&pageSize=500')).toEqual([])
  })

  it('has thirty entries unless another number is asked for', async () => {
    for (let number = 0; number < 31; number += 1) await create()
    expect((await get(TEXT)).data).toHaveLength(30)
  })

  it.each(['pageNum=0', 'pageNum=1001', 'pageNum=x', 'pageSize=0', 'pageSize=501', 'pageSize=1.5', 'pageSize='])(
    'refuses %s',
    async (query) => {
      const [name] = query.split('=')
      expect(await get(`${TEXT}?${query}`)).toMatchObject({ code: 1201, message: expect.stringMatching(`^${name} `) })
    },
  )
})
