import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { ChannelHealth } from '../../src/routing/circuit-breaker.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

let lab: VidgenGateway
let caller: VideoCaller

beforeAll(async () => {
  lab = await startVidgenGateway({ withSecond: true })
  caller = new VideoCaller(lab.gateway)
}, STORE_START_MS)
beforeEach(() => {
  // As if the time for which a fault is remembered had passed.
  const health = lab.gateway.application.get(ChannelHealth)
  for (const channel of ['first', 'second']) health.reset(channel)
  for (const simulator of [lab.simulator, lab.second]) simulator.reset()
})
afterAll(() => lab.close())

const requests = ({ requests: seen }: VidgenSimulator): unknown[] => seen.map(({ method }) => method)
/** What was asked for; reads come from the background as well, for creates whose answers were lost. */
const creates = (simulator: VidgenSimulator): number => requests(simulator).filter((method) => method === 'POST').length

describe('a create with a second channel', () => {
  it.each(['quota', '403', '429', '503'] as const)(
    'is made there when the first refuses with %s, and read from there alone',
    async (fault) => {
      lab.simulator.queueFault(fault, 'POST')
      const id = await caller.created({ external_task_id: `moved-${fault}` })
      lab.second.settle(id, 'succeed')
      expect((await caller.read(`moved-${fault}`)).body.data).toMatchObject({ task_id: id, task_status: 'succeed' })
      expect([requests(lab.simulator), requests(lab.second)]).toEqual([['POST'], ['POST', 'GET']])
    },
  )

  it.each(['#1301 x', '#1201 x'])('is not sent there when the caller is at fault (%s)', async (prompt) => {
    expect((await caller.create({ prompt })).status).toBe(400)
    expect(requests(lab.second)).toEqual([])
  })

  it('leaves nothing behind when both refuse', async () => {
    const before = await caller.listed()
    lab.simulator.queueFault('429', 'POST')
    lab.second.queueFault('quota', 'POST')
    const refused = await caller.create({ external_task_id: 'order-2' })
    expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([429, 1302, '2'])
    expect(await caller.listed()).toEqual(before)
    await caller.created({ external_task_id: 'order-2' })
  })

  it('that the second loses, after the first refused, is found at the second', async () => {
    lab.simulator.queueFault('quota', 'POST')
    lab.second.queueFault('cut', 'POST')
    expect((await caller.create({ external_task_id: 'order-3' })).status).toBe(502)
    expect((await caller.read('order-3')).body.data.task_id).toBe(lab.second.creates.at(-1)?.id)
    expect([creates(lab.simulator), creates(lab.second)]).toEqual([1, 1])
    expect(lab.second.duplicates).toEqual([])
  })

  // Late in this file: what was lost is looked for, and found, while later tests would count tasks and requests.
  it.each(['#5000 x', '#lost x', '#reset x', '#html x'])(
    'is not sent there when the first may have made it (%s)',
    async (prompt) => {
      expect((await caller.create({ prompt })).status).toBe(502)
      expect(requests(lab.second)).toEqual([])
    },
  )

  it('is made there when nobody listens at the first', async () => {
    await lab.proxy.close()
    await caller.created()
    expect([requests(lab.simulator), creates(lab.second)]).toEqual([[], 1])
  })
})
