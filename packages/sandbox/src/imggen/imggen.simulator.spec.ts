import { inflateSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ImggenSimulatorLab, KEY, type Shown, START_MS } from '../../test/task-simulator-labs.js'
import { startCallbackReceiver } from '../tasks/webhooks.js'
import { pngFile } from './imggen-routes.js'
import { type ImggenSimulatorOptions, startImggenSimulator } from './imggen.simulator.js'

describe('the imggen simulator', () => {
  const lab = new ImggenSimulatorLab()
  const { fetchTask, get, post, restart, seed, shown } = lab

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

    it('ends with nine buttons in their order, and a number beyond a double', async () => {
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
      const listed = (await post('/mj/task/list-by-condition', { ids: [three, '1', one] })) as unknown as {
        id: string
      }[]
      expect(listed.map(({ id }) => id)).toEqual([one, three])
      expect(await post('/mj/task/list-by-condition', {})).toEqual([])
    })

    it('also lists another task if a test configures it', async () => {
      await restart({ listsOthers: true })
      const [one, two] = ['one', 'two'].map((prompt) => lab.simulator.submit(prompt))
      const listed = (await post('/mj/task/list-by-condition', { ids: [one] })) as unknown as { id: string }[]
      expect(listed.map(({ id }) => id)).toEqual([two, one])
    })
  })

  describe('image-seed', () => {
    it('is the seed alone, always the same one', async () => {
      const id = lab.simulator.submit('a kite')
      lab.simulator.finish(id)
      const answers = [await (await seed(id)).json(), await (await seed(id)).json()]
      expect(answers[0]).toEqual({ code: 1, description: 'success', result: expect.stringMatching(/^\d{1,10}$/) })
      expect(answers[1]).toEqual(answers[0])
    })

    it('is the task object with the seed when a test wants it so', async () => {
      await restart({ seed: 'task' })
      const id = lab.simulator.submit('a kite')
      lab.simulator.finish(id)
      expect(await (await seed(id)).json()).toMatchObject({
        id,
        status: 'SUCCESS',
        properties: { finalPrompt: 'a kite --v 6', seed: expect.stringMatching(/^\d{1,10}$/) },
      })
    })

    it('may take its time', async () => {
      await restart({ seedDelayMs: 60_000 })
      const id = lab.simulator.submit('a kite')
      lab.simulator.finish(id)
      const arrived = lab.simulator.nextRequest()
      let isAnswered = false
      const answer = seed(id).then((response) => {
        isAnswered = true
        return response.status
      })
      await arrived
      // Another exchange goes all the way there and back, so that the first one is where it waits.
      await fetchTask(id)
      lab.clock.advance(59_999)
      await fetchTask(id)
      expect(isAnswered).toBe(false)
      lab.clock.advance(1)
      expect(await answer).toBe(200)
    })

    it('of a task that has not succeeded is refused with 400', async () => {
      const response = await seed(lab.simulator.submit('a kite'))
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ code: 4, description: 'The task has no message hash' })
    })
  })

  describe('notifyHook', () => {
    async function states(options: ImggenSimulatorOptions): Promise<string[]> {
      await restart(options)
      const receiver = await startCallbackReceiver()
      lab.simulator.submit('a kite #fail', { notifyHook: `${receiver.url}/hook` })
      lab.clock.advance(100_000)
      await lab.simulator.notificationsSent()
      await receiver.close()
      expect(lab.simulator.notifications.every(({ status }) => status === 200)).toBe(true)
      return receiver.received.map(({ body }) => {
        const { status, progress } = JSON.parse(body) as Shown
        return `${status} ${progress ?? ''}`
      })
    }
    const inOrder = ['SUBMITTED 0%', 'IN_PROGRESS 0%', 'IN_PROGRESS 31%', 'FAILURE ']

    it('gets the whole task at every change', async () => {
      expect(await states({})).toEqual(inOrder)
    })

    it('gets it twice, or the last change first, when a test wants it so', async () => {
      expect(await states({ hooks: { duplicate: true } })).toEqual(inOrder.flatMap((state) => [state, state]))
      expect(await states({ hooks: { outOfOrder: true } })).toEqual([...inOrder].reverse())
    })
  })

  describe('pictures', () => {
    it('are there for every preview and the end, and change', async () => {
      const id = lab.simulator.submit('a kite')
      lab.clock.advance(3000)
      const preview = (await shown(id)).imageUrl ?? ''
      expect(preview).toBe(`${lab.simulator.url}/images/${id}-3.png`)
      lab.clock.advance(3000)
      const end = (await shown(id)).imageUrl ?? ''
      const [first, last] = [await fetch(preview), await fetch(end)]
      expect([first.status, last.status, last.headers.get('content-type')]).toEqual([200, 200, 'image/png'])
      expect(Buffer.from(await first.arrayBuffer()).equals(Buffer.from(await last.arrayBuffer()))).toBe(false)
    })

    it('are 404 where there are none', async () => {
      const id = lab.simulator.submit('a kite')
      for (const name of [`${id}-0.png`, `${id}-99.png`, '1-3.png', 'x']) {
        expect((await fetch(`${lab.simulator.url}/images/${name}`)).status).toBe(404)
      }
    })
  })
})

describe('a picture', () => {
  const file = pngFile(3, 'c03030')

  it('is a PNG of its size and colour', () => {
    expect(file.subarray(0, 16).toString('hex')).toBe('89504e470d0a1a0a0000000d49484452')
    expect([file.readUInt32BE(16), file.readUInt32BE(20)]).toEqual([3, 3])
    const at = file.indexOf('IDAT')
    const pixels = inflateSync(file.subarray(at + 4, at + 4 + file.readUInt32BE(at - 4)))
    expect(pixels.toString('hex')).toBe(`00${'c03030'.repeat(3)}`.repeat(3))
  })

  it('ends with the checksum every PNG ends with', () => {
    expect(file.subarray(-12).toString('hex')).toBe('0000000049454e44ae426082')
  })
})
