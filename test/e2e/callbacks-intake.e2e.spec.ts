import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { type PublicEdge, startPublicEdge } from '../support/public-edge.js'
import { type RawAnswer, sendRaw } from '../support/raw-http.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { type ShownTask, VideoCaller } from '../support/video-caller.js'

let edge: PublicEdge
let lab: VidgenGateway
let caller: VideoCaller

// Nothing but the upstream's own calls makes this gateway ask for a task: it would do so once an hour.
beforeAll(async () => {
  edge = await startPublicEdge()
  lab = await startVidgenGateway({
    sections: { server: { publicUrl: edge.url } },
    callbacks: { secret: undefined },
    simulator: { callbacks: { duplicate: true } },
  })
  edge.leadTo(lab.gateway.url)
  caller = new VideoCaller(lab.gateway)
}, STORE_START_MS)
afterAll(async () => {
  await lab.simulator.callbacksSent()
  await lab.close()
  await edge.close()
})

const givenUpstream = (): string => String(lab.simulator.creates.at(-1)?.fields['callback_url'])
const tokenIn = (url: string): string => url.slice(url.lastIndexOf('/') + 1)
const intake = (token: string, body = '{}'): Promise<RawAnswer> =>
  sendRaw(lab.gateway.url, { path: `/vidgen/callbacks/${token}`, body, headers: { authorization: undefined } })

describe('a gateway with a public address', () => {
  it('gives the upstream an address of its own for each task, which no caller gets to see', async () => {
    const answers = [await caller.create({ callback_url: lab.receiver.url() })]
    const first = givenUpstream()
    answers.push(await caller.create())
    const second = givenUpstream()
    for (const url of [first, second]) expect(url).toMatch(new RegExp(`^${edge.url}/vidgen/callbacks/[\\w-]{32}$`))
    expect(first).not.toBe(second)
    answers.push(await caller.read(answers[0]?.body.data.task_id ?? ''))
    for (const { text } of answers) expect(text).not.toContain(tokenIn(first))
  })

  it('asks for a task as soon as the upstream calls, and tells the caller what it finds', async () => {
    const before = lab.receiver.received.length
    const id = await caller.created({ callback_url: lab.receiver.url(), external_task_id: 'hastened' })
    lab.simulator.advance(id)
    await lab.receiver.has(before + 1)
    // Its copy as well, which may have the gateway ask once more: it can find the next step before that is announced.
    await lab.simulator.callbacksSent()
    lab.simulator.advance(id)
    await lab.receiver.has(before + 2)
    const events = lab.receiver.received.slice(before)
    expect(events.map(({ body }) => (JSON.parse(body) as ShownTask).task_status)).toEqual(['processing', 'succeed'])
    await lab.simulator.callbacksSent()
    // Each came twice; of a task that is known to have ended nobody has to be told.
    const [first, copy, ...ofEnd] = lab.simulator.callbacks.map(({ status }) => status)
    expect([first, copy, ofEnd.length]).toEqual([200, 200, 2])
    for (const status of ofEnd) expect([200, 404]).toContain(status)
    expect(lab.receiver.received).toHaveLength(before + 2)
  })

  it('without a secret sends events unsigned, but with their id', () => {
    const last = lab.receiver.received.at(-1)
    expect(last?.headers['webhook-id']).toMatch(/^msg_/)
    expect(last?.headers).not.toHaveProperty('webhook-signature')
  })

  it('does not believe what it is called with', async () => {
    const id = await caller.created()
    const stream = await caller.follow(id)
    const asked = lab.simulator.nextRequest()
    const forged = JSON.stringify({ task_id: id, task_status: 'succeed', task_result: { videos: [] } })
    expect((await intake(tokenIn(givenUpstream()), forged)).status).toBe(200)
    expect((await asked).path).toBe(`/v1/videos/text2video/${id}`)
    expect((await caller.read(id)).body.data.task_status).toBe('submitted')
    lab.simulator.advance(id)
    lab.simulator.advance(id)
    expect(await stream.ended).toBe(true)
    expect(stream.statuses).not.toContain('failed')
  })

  it.each(['x', 'A'.repeat(32), '%00', "'; drop table task; --".padEnd(32)])(
    'has nothing for who calls it with %j',
    async (token) => {
      const { status, text } = await intake(encodeURIComponent(token))
      expect([status, (JSON.parse(text) as { code: number }).code]).toEqual([404, 1203])
    },
  )

  it('takes no long stories', async () => {
    await caller.created()
    const token = tokenIn(givenUpstream())
    expect((await intake(token, 'x'.repeat(65_537))).status).toBe(413)
    expect((await intake(token, 'not even JSON')).status).toBe(200)
  })

  it('has nothing more to be told about a task that has ended', async () => {
    const id = await caller.created()
    const token = tokenIn(givenUpstream())
    const stream = await caller.follow(id)
    lab.simulator.settle(id, 'succeed')
    expect(await stream.ended).toBe(true)
    expect((await intake(token)).status).toBe(404)
  })

  it('logs that it was called, and not by which address', async () => {
    await caller.created()
    const token = tokenIn(givenUpstream())
    const { headers } = await intake(token)
    expect(await lab.gateway.logLine(String(headers['x-request-id']))).toMatchObject({
      route: '/vidgen/callbacks/:token',
      status: 200,
    })
    expect(lab.gateway.logText()).not.toContain(token)
  })
})
