import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { ADMIN_KEY } from '../support/admin-caller.js'
import { ADMIN_SECTION } from '../support/admin-lab.js'
import { eventually } from '../support/eventually.js'
import { ANSWER, CHAT, chatBytes, FULL, FullGateway, KeptAliveClient } from '../support/failing-calls.js'
import { type RawAnswer, sendRaw } from '../support/raw-http.js'
import { handshake, REALTIME_PATH } from '../support/upgrade-client.js'

let lab: FullGateway
let sections: object = FULL
beforeEach(async () => {
  lab = await FullGateway.start(sections)
})
afterEach(async () => {
  await lab.close()
})

describe('A process that has all it can do, and operators', () => {
  beforeAll(() => {
    sections = { ...FULL, ...ADMIN_SECTION }
  })
  afterAll(() => {
    sections = FULL
  })

  it('is administered by its operators, and by no more than four requests at once', async () => {
    const { answered } = await lab.fill()
    const path = '/admin/v1/audit'
    const headers = { authorization: `Bearer ${ADMIN_KEY}` }
    const get = async (): Promise<number> => (await sendRaw(lab.url, { method: 'GET', path, headers })).status
    expect(await get()).toBe(200)
    const stalled = Array.from({ length: 4 }, () => new KeptAliveClient(lab.url))
    for (const { socket } of stalled) {
      socket.write(
        `POST /admin/v1/keys HTTP/1.1\r\nhost: gateway\r\nauthorization: ${headers.authorization}\r\n` +
          'content-type: application/json\r\ncontent-length: 9\r\n\r\n',
      )
    }
    await eventually(async () => (await get()) === 503)
    for (const { socket } of stalled) socket.destroy()
    await eventually(async () => (await get()) === 200)
    lab.empty()
    await answered
  })
})

describe('Many refusals on one connection', () => {
  const REFUSALS = 300
  let client: KeptAliveClient
  let answered: Promise<RawAnswer>
  beforeEach(async () => {
    ;({ answered } = await lab.fill())
    client = new KeptAliveClient(lab.url)
    for (let index = 0; index < REFUSALS; index++) {
      const { status, head, body } = await client.ask(chatBytes(`storm-${index}`))
      expect([status, head]).toEqual([
        503,
        expect.stringMatching(new RegExp(`\r\nx-request-id: storm-${index}\r\n`, 'i')),
      ])
      expect(head).toMatch(/\r\nretry-after: 1\r\n/i)
      expect(JSON.parse(body)).toMatchObject({ error: { code: 'overloaded' } })
    }
  })
  afterEach(() => {
    client.socket.destroy()
  })

  it('are all counted, and a hundred of a second have a line in the log each', async () => {
    expect(lab.admission.refused.concurrency).toBe(REFUSALS)
    const lines = lab.gateway.logText().split('"requestId":"storm-').length - 1
    expect(lines).toBeGreaterThanOrEqual(100)
    expect(lines).toBeLessThan(REFUSALS)
    lab.empty()
    await answered
  })

  it('leave the connection as good as any: it is served when there is room', async () => {
    lab.empty()
    await answered
    await eventually(() => lab.admission.underWay === 0)
    for (let index = 0; index < 3; index++) {
      expect(await client.ask()).toMatchObject({ status: 200, body: ANSWER })
      await eventually(() => lab.admission.underWay === 0)
    }
  })

  it('leave a request alone that comes in pieces', async () => {
    const [start, rest] = [chatBytes('pieces').slice(0, 40), chatBytes('pieces').slice(40)]
    client.socket.write(start)
    const refused = await client.ask(rest)
    expect([refused.status, refused.head]).toEqual([503, expect.stringContaining('x-request-id: pieces')])
    client.socket.write(start)
    lab.empty()
    await answered
    await eventually(() => lab.admission.underWay === 0)
    expect((await client.ask(rest)).status).toBe(200)
  })

  it('leave a large body alone, and the calls behind it', async () => {
    lab.empty()
    await answered
    await eventually(() => lab.admission.underWay === 0)
    const body = CHAT.body.replace('"x"', `"${'x'.repeat(700_000)}"`)
    expect(await client.ask(chatBytes('large', body))).toMatchObject({ status: 200, body: ANSWER })
    expect(await client.ask()).toMatchObject({ status: 200, body: ANSWER })
  })

  it('leave an upgrade alone', async () => {
    const refused = await client.ask(handshake({ path: REALTIME_PATH }).toString('latin1'))
    expect(refused.status).toBe(503)
    await once(client.socket, 'close')
    lab.empty()
    await answered
  })

  it('leave broken HTTP to be what it is', async () => {
    expect((await client.ask('POST / HTTP/1.1\r\nbroken header\r\n\r\n')).status).toBe(400)
    lab.empty()
    await answered
  })
})
