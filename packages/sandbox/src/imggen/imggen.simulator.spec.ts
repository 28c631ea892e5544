import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ImggenSimulatorLab, type Shown, START_MS } from '../../test/imggen-simulator-lab.js'

const lab = new ImggenSimulatorLab()
const { fetchTask, post, restart, seed, shown } = lab

beforeEach(() => lab.startAnew())
afterEach(() => lab.close())

describe('a task', () => {
  it('proceeds by the clock, with another preview at each step', async () => {
    const id = lab.simulator.submit('a red kite')
    const seen: unknown[] = []
    const images = new Set<unknown>()
    for (let step = 0; step < 7; step += 1) {
      const { status, progress, imageUrl } = await shown(id)
      seen.push([status, progress])
      images.add(imageUrl)
      lab.clock.advance(1000)
    }
    expect(seen).toEqual([
      ['NOT_START', null],
      ['SUBMITTED', '0%'],
      ['IN_PROGRESS', '0%'],
      ['IN_PROGRESS', '31%'],
      ['IN_PROGRESS', '62%'],
      ['IN_PROGRESS', '93%'],
      ['SUCCESS', '100%'],
    ])
    // null and four pictures.
    expect(images.size).toBe(5)
  })

  it('does not know its times until they have come', async () => {
    const id = lab.simulator.submit('a red kite')
    expect(await shown(id)).toMatchObject({ submitTime: START_MS, startTime: null, finishTime: null, imageUrl: null })
    lab.clock.advance(6000)
    expect(await shown(id)).toMatchObject({ startTime: START_MS + 1000, finishTime: START_MS + 6000 })
  })

  it('ends with nine buttons in their order, and a number no double can hold', async () => {
    const id = lab.simulator.submit('a red kite')
    lab.simulator.finish(id)
    const text = await (await fetchTask(id)).text()
    expect(text).toContain('"shardId":9223372036854775807}')
    const { buttons, properties } = JSON.parse(text) as Shown
    expect(buttons.map(({ label }) => label)).toEqual(['U1', 'U2', 'U3', 'U4', '', 'V1', 'V2', 'V3', 'V4'])
    const uuid = /^MJ::JOB::upsample::1::([0-9a-f-]{36})$/.exec(buttons[0]?.customId ?? '')?.[1] ?? 'none'
    expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(buttons[4]).toEqual({
      customId: `MJ::JOB::reroll::0::${uuid}::SOLO`,
      emoji: '🔄',
      label: '',
      type: 2,
      style: 2,
    })
    expect(buttons[8]?.customId).toBe(`MJ::JOB::variation::4::${uuid}`)
    expect(properties).toMatchObject({ finalPrompt: 'a red kite --v 6', finalZhPrompt: '', messageHash: uuid })
  })

  it('with #fail ends as a failure with a reason and an empty progress', async () => {
    const id = lab.simulator.submit('a kite #fail')
    lab.clock.advance(100_000)
    expect(await shown(id)).toMatchObject({
      status: 'FAILURE',
      progress: '',
      failReason: expect.stringMatching(/rejected/),
      finishTime: START_MS + 4000,
      buttons: [],
    })
  })

  it('with #stuck never ends', async () => {
    const id = lab.simulator.submit('#stuck')
    lab.clock.advance(100_000)
    lab.simulator.advance(id)
    expect(await shown(id)).toMatchObject({ status: 'IN_PROGRESS', progress: '31%' })
  })

  it('with #null is fetched as null', async () => {
    const response = await fetchTask(lab.simulator.submit('#null'))
    expect([response.status, await response.text()]).toEqual([200, 'null'])
  })

  it.each([
    ['#html', 200, /^<!doctype html>/],
    ['#empty', 200, /^$/],
    ['#500', 500, /"code":9/],
    ['#429', 429, /"code":23/],
    ['#quota', 429, /"code":30/],
    ['#401', 401, /^$/],
  ])('with %s is of no use, with its seed', async (word, status, body) => {
    const id = lab.simulator.submit(`${word} a kite`)
    for (const response of [await fetchTask(id), await seed(id)]) {
      expect(response.status).toBe(status)
      expect(await response.text()).toMatch(body)
    }
  })

  it('moves by hand alone when a test wants it so', async () => {
    await restart({ stepMs: 'manual' })
    const [first, second] = [lab.simulator.submit('one', { id: '1750000000000123' }), lab.simulator.submit('two')]
    expect(first).toBe('1750000000000123')
    lab.clock.advance(100_000)
    lab.simulator.advance(first)
    lab.simulator.advance()
    expect(await shown(first)).toMatchObject({ status: 'IN_PROGRESS' })
    expect(await shown(second)).toMatchObject({ status: 'SUBMITTED' })
    lab.simulator.forget(first)
    expect((await fetchTask(first)).status).toBe(404)
    expect(() => {
      lab.simulator.advance(first)
    }).toThrow(/no task/)
  })
})

describe('the members of the family', () => {
  it.each([
    ['N', ['customId', 'botType', 'buttons', 'maskBase64']],
    ['T', []],
    ['A', []],
  ] as const)('%s leaves out the fields %j', async (variant, missing) => {
    await restart({ variant })
    const task = await shown(lab.simulator.submit('a kite'))
    const all = ['customId', 'botType', 'buttons', 'maskBase64']
    expect(all.filter((name) => !Object.hasOwn(task, name))).toEqual(missing)
  })

  it('A has 0 and empty texts where the others have null, and two properties', async () => {
    await restart({ variant: 'A' })
    const task = await shown(lab.simulator.submit('a kite'))
    expect(Object.values(task)).not.toContain(null)
    expect(task).toMatchObject({ startTime: 0, progress: '', imageUrl: '', failReason: '' })
    expect(task['properties']).toEqual({ finalPrompt: '', finalZhPrompt: '' })
  })

  it.each([
    [{ variant: 'N' }, 200, '', 200, /^\{"code":3,/],
    [{ variant: 'N', unknown: 'null' }, 200, 'null', 200, /^\{"code":3,/],
    [{ variant: 'T' }, 404, '', 404, /^$/],
    [{ variant: 'A' }, 400, '{"description":"task_no_found","type":"upstream_error","code":4}', 400, /task_no_found/],
  ] as const)('with %j does not know a task in its own way', async (options, status, body, seedStatus, seedBody) => {
    await restart(options)
    const fetched = await fetchTask('1')
    expect([fetched.status, await fetched.text()]).toEqual([status, body])
    const seeded = await seed('1')
    expect(seeded.status).toBe(seedStatus)
    expect(await seeded.text()).toMatch(seedBody)
  })
})

describe('list-by-condition', () => {
  it('leaves out what is unknown', async () => {
    const [one, , three] = ['one', 'two', 'three'].map((prompt) => lab.simulator.submit(prompt))
    const listed = (await post('/mj/task/list-by-condition', { ids: [three, '1', one] })) as unknown as { id: string }[]
    expect(listed.map(({ id }) => id)).toEqual([one, three])
    expect(await post('/mj/task/list-by-condition', {})).toEqual([])
  })

  it('also holds what was not asked for when a test wants it so', async () => {
    await restart({ listsOthers: true })
    const [one, two] = ['one', 'two'].map((prompt) => lab.simulator.submit(prompt))
    const listed = (await post('/mj/task/list-by-condition', { ids: [one] })) as unknown as { id: string }[]
    expect(listed.map(({ id }) => id)).toEqual([two, one])
  })
})
