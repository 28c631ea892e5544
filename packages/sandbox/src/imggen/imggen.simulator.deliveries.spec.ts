import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ImggenSimulatorLab, type Shown } from '../../test/imggen-simulator-lab.js'
import { startCallbackReceiver } from '../tasks/callback-receiver.js'
import type { ImggenSimulatorOptions } from './imggen.simulator.js'

const lab = new ImggenSimulatorLab()
const { fetchTask, restart, seed, shown } = lab

beforeEach(() => lab.startAnew())
afterEach(() => lab.close())

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
