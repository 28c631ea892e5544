import { afterEach, beforeEach, expect, it } from '@jest/globals'
import { RealtimeProbe } from '../../../../test/support/realtime-probe.js'
import { type P1Simulator, startP1Simulator } from './p1.simulator.js'

let simulator: P1Simulator

beforeEach(async () => {
  simulator = await startP1Simulator({ apiKey: 'test-key' })
})

afterEach(async () => {
  await simulator.close()
})

const open = (): Promise<RealtimeProbe> => RealtimeProbe.open({ url: simulator.url.replace(/^http/, 'ws') })

it('the simulator of P1 answers realtime voice and HTTP at one address', async () => {
  const probe = await open()
  expect(await probe.next('session.created')).toMatchObject({ session: { type: 'realtime' } })
  const models = await fetch(`${simulator.url}/v1/models`, { headers: { authorization: 'Bearer test-key' } })
  expect(models.status).toBe(200)
  await models.text()
  expect(simulator.realtime.sessions).toHaveLength(1)
  expect(simulator.requests).toHaveLength(1)
  expect(simulator.realtime.recordOf(simulator.realtime.lastSession).sentEventTypes).toEqual(['session.created'])
  await probe.close()
  await simulator.realtime.idle()
  expect(simulator.violations).toEqual([])
})

it('speaks the beta dialect if it is configured', async () => {
  const beta = await startP1Simulator({ apiKey: 'test-key', realtimeDialect: 'beta' })
  const url = beta.url.replace(/^http/, 'ws')
  const probe = await RealtimeProbe.open({ url, headers: { 'openai-beta': 'realtime=v1' } })
  expect(await probe.next('session.created')).toMatchObject({ session: { modalities: ['audio', 'text'] } })
  await probe.close()
  await beta.close()
})

it('refuses a wrong key and other paths, and shows violations of both kinds', async () => {
  const url = simulator.url.replace(/^http/, 'ws')
  expect(await RealtimeProbe.refused({ url, key: 'wrong' })).toMatchObject({ status: 401 })
  expect(await RealtimeProbe.refused({ url: `${url}/elsewhere` })).toMatchObject({ status: 404 })
  const probe = await RealtimeProbe.open({ url, headers: { cookie: 'a=b' } })
  expect(simulator.violations).toEqual(['forwarded header: cookie'])
  await probe.close()
})

it('destroys open sessions when it closes, and forgets them when it is reset', async () => {
  simulator.realtime.queueFault({ kind: 'status', status: 503, body: 'down' })
  simulator.reset()
  const probe = await open()
  await probe.next('session.created')
  await simulator.close()
  expect(await probe.closed).toMatchObject({ code: 1006 })
  expect(simulator.realtime.lastSession?.end).toMatchObject({ by: 'simulator' })
  simulator = await startP1Simulator()
})
