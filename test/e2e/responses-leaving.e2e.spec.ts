import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { rm } from 'node:fs/promises'
import { describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { startCall } from '../support/failing-calls.js'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { askLimits } from '../support/limited-gateway.js'
import { listenOnLoopback } from '../support/loopback-server.js'
import { UPSTREAM_KEY } from '../support/provider-gateways.js'
import { RESPONSES_MODEL, RESPONSES_PATH } from '../support/responses-lab.js'
import { dataDirectory } from '../support/stores.js'
import { recordWhere } from '../support/usage-lab.js'

const USAGE = { input_tokens: 7, output_tokens: 5, total_tokens: 12 }

/** An answer to a create that the test writes. */
interface Answer {
  readonly response: ServerResponse
  readonly isGone: () => boolean
}

const queued = (id: string): object => ({
  id,
  object: 'response',
  background: true,
  status: 'queued',
  output: [],
  usage: null,
})
const completed = (id: string): object => ({ ...queued(id), status: 'completed', usage: USAGE })
const created = (id: string): string =>
  `event: response.created\ndata: ${JSON.stringify({ type: 'response.created', response: queued(id) })}\n\n`

describe('a caller who leaves before a response in the background is answered', () => {
  let gateway: TestGateway
  let arrived: (answer: Answer) => void

  shareLab(async () => {
    const server = createServer((request: IncomingMessage, response: ServerResponse) => {
      request.resume()
      // Every response has ended when it is asked for.
      if (request.method === 'GET') {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(completed(String(request.url?.slice(RESPONSES_PATH.length + 1)))))
        return
      }
      let isGone = false
      response.once('close', () => (isGone = !response.writableEnded))
      arrived({ response, isGone: () => isGone })
    })
    const upstream = await listenOnLoopback(server)
    const directory = await dataDirectory()
    const baseUrl = `http://127.0.0.1:${upstream.port}`
    gateway = await startGateway({
      channels: [{ id: 'p1', provider: 'p1', baseUrl, credentials: UPSTREAM_KEY }],
      keys: [{ id: 'test', key: TEST_KEY, limits: { concurrency: 1 } }],
      sections: { database: {}, usage: { store: true, batchMs: 1 } },
      dataDirectory: directory,
    })
    return {
      close: async () => {
        await gateway.close()
        await upstream.close()
        await rm(directory, { recursive: true })
      },
    }
  })

  const freeSlots = async (): Promise<number> =>
    (await askLimits(gateway.url, TEST_KEY)).limits['concurrency']?.remaining ?? NaN

  /** Leaves once the upstream has the request, and has said so much; its place is not free yet. */
  async function leave(requestId: string, more: object, type: string, beginning: string): Promise<Answer> {
    const asked = new Promise<Answer>((resolve) => (arrived = resolve))
    const departed = new Promise((resolve) => {
      gateway.server.once('request', (_request: IncomingMessage, response: ServerResponse) => {
        response.once('close', resolve)
      })
    })
    const body = JSON.stringify({ model: RESPONSES_MODEL, input: 'Hello', background: true, ...more })
    const disconnect = startCall(gateway, { path: RESPONSES_PATH, body, headers: { 'x-request-id': requestId } })
    const answer = await asked
    answer.response.writeHead(200, { 'content-type': type })
    answer.response.write(beginning)
    disconnect()
    await departed
    expect([await freeSlots(), answer.isGone()]).toEqual([0, false])
    return answer
  }

  const recordOf = (requestId: string) => recordWhere(gateway, ({ request_id }) => request_id === requestId)

  it.each([
    ['whole', {}, 'application/json', ' ', JSON.stringify(queued('resp_whole'))],
    ['streamed', { stream: true }, 'text/event-stream', ': PROCESSING\n\n', created('resp_streamed')],
  ])('is billed all the same: %s', async (form, more, type, beginning, rest) => {
    const { response, isGone } = await leave(`left-${form}`, more, type, beginning)
    response.write(rest)
    if (form === 'whole') response.end()
    else await eventually(isGone)
    await eventually(async () => (await freeSlots()) === 1)
    const used = { units: {}, reported: null, estimated: null }
    expect(await recordOf(`left-${form}`)).toMatchObject({ kind: 'request', outcome: 'caller_left', ...used })
    const bill = await recordWhere(gateway, ({ id }) => id === `task response p1 resp_${form}`)
    expect(bill).toMatchObject({ outcome: 'ok', reported: USAGE })
  })

  it('is charged for one that the upstream has made while it was waited for', async () => {
    const { response } = await leave('left-at-once', {}, 'application/json', ' ')
    response.end(JSON.stringify({ ...completed('resp_at_once'), background: false }))
    await eventually(async () => (await freeSlots()) === 1)
    expect(await recordOf('left-at-once')).toMatchObject({ outcome: 'caller_left', reported: USAGE })
  })
})
