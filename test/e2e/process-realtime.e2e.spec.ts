import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { TEST_KEY } from '../support/gateway.js'
import { RealtimeProbe } from '../support/realtime-probe.js'
import {
  REALTIME_PATH,
  realtimeChannel,
  type RealtimeUpstream,
  sendUpgrade,
  startRealtimeUpstream,
} from '../support/realtime-upstream.js'
import { promised } from '../support/eventually.js'

const GOING_AWAY = 1001
const CREATED = { type: 'response.created', response: { id: 'resp_1' } }
const USAGE = { total_tokens: 70, input_tokens: 40, output_tokens: 30 }
const DONE = { type: 'response.done', response: { id: 'resp_1', status: 'completed', usage: USAGE } }
const delta = (text: string): object => ({ type: 'response.output_text.delta', delta: text })

let gateway: GatewayProcess | undefined
let upstream: RealtimeUpstream | undefined
afterEach(async () => {
  await gateway?.close()
  await upstream?.close()
  gateway = upstream = undefined
})

interface Lab {
  readonly process: GatewayProcess
  readonly url: string
  readonly far: RealtimeUpstream
}

/** With an upstream of the test's. */
async function start(shutdownGraceMs: number, answer?: Parameters<typeof startRealtimeUpstream>[0]): Promise<Lab> {
  const far = (upstream = await startRealtimeUpstream(answer))
  const directory = await emptyDirectory()
  const configuration = {
    auth: { keys: [{ id: 'test', key: TEST_KEY }] },
    channels: [realtimeChannel(far)],
    timeouts: { shutdownGraceMs },
  }
  await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
  const process = (gateway = runGateway(directory))
  return { process, url: await process.listening(), far }
}

interface Session {
  readonly client: RealtimeProbe
  readonly upstream: WebSocket
}

async function openSession({ url, far }: Lab): Promise<Session> {
  const client = await RealtimeProbe.open({ url: url.replace('http', 'ws'), key: TEST_KEY })
  return { client, upstream: far.sockets.at(-1) as WebSocket }
}

/** One in which the upstream has begun an answer by itself, and the client has heard of it. */
async function openAnswering(lab: Lab): Promise<Session> {
  const session = await openSession(lab)
  session.upstream.send(JSON.stringify(CREATED))
  await session.client.next('response.created')
  return session
}

describe('a process after SIGTERM', () => {
  it('closes realtime sessions with 1001, accounts for them and exits with 0', async () => {
    gateway = runGateway(await emptyDirectory())
    const url = (await gateway.said(/http:\/\/127\.0\.0\.1:\d+/))[0]
    const client = new WebSocket(url.replace('http', 'ws') + REALTIME_PATH, [
      'realtime',
      'openai-insecure-api-key.sandbox-demo-key',
    ])
    const [event] = (await once(client, 'message')) as [Buffer]
    expect(JSON.parse(event.toString())).toMatchObject({ type: 'session.created' })
    const closed = once(client, 'close')
    gateway.child.kill('SIGTERM')
    expect((await closed)[0]).toBe(GOING_AWAY)
    const { code, output } = await gateway.exited
    expect(code).toBe(0)
    expect(output).toMatch(/"route":"\/v1\/realtime".*"status":101.*"msg":"request"/)
    expect(output).not.toMatch(/"level":(?:50|60)/)
  })

  it('lets a realtime answer end that is under way, closes the sessions without one meanwhile, and exits then', async () => {
    const lab = await start(60_000)
    const [idle, busy] = [await openSession(lab), await openAnswering(lab)]
    const startedAtMs = performance.now()
    lab.process.child.kill('SIGTERM')
    expect((await idle.client.closed).code).toBe(GOING_AWAY)
    busy.upstream.send(JSON.stringify(delta('all of')))
    expect(await busy.client.next('response.text.delta')).toMatchObject({ delta: 'all of' })
    busy.upstream.send(JSON.stringify(delta(' it')))
    busy.upstream.send(JSON.stringify(DONE))
    expect(await busy.client.next('response.done')).toMatchObject({ response: { usage: USAGE } })
    expect((await busy.client.closed).code).toBe(GOING_AWAY)
    const { code, output } = await lab.process.exited
    expect(code).toBe(0)
    expect(performance.now() - startedAtMs).toBeLessThan(promised(20_000))
    const usages = output.split('\n').filter((line) => line.includes('"msg":"usage"'))
    expect(usages.map((line) => JSON.parse(line) as unknown)).toMatchObject([{ units: USAGE, estimated: false }])
  })

  it('cuts an answer that has not ended when the grace time is over, and not before', async () => {
    const lab = await start(500)
    const { client } = await openAnswering(lab)
    const startedAtMs = performance.now()
    lab.process.child.kill('SIGTERM')
    expect((await client.closed).code).toBe(GOING_AWAY)
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(490)
    expect((await lab.process.exited).code).toBe(0)
    expect(performance.now() - startedAtMs).toBeLessThan(promised(5_000))
  })

  it.each<[string, (session: Session) => void]>([
    [
      'client that does not read any more',
      ({ client }) => {
        client.socket.pause()
      },
    ],
    [
      'upstream that does not read any more',
      ({ upstream: far }) => {
        far.pause()
      },
    ],
  ])('is not kept by a %s', async (_which, stop) => {
    const lab = await start(300)
    const session = await openAnswering(lab)
    stop(session)
    const startedAtMs = performance.now()
    lab.process.child.kill('SIGTERM')
    expect((await lab.process.exited).code).toBe(0)
    expect(performance.now() - startedAtMs).toBeLessThan(promised(300 + 10_000))
    expect(lab.process.output()).toMatch(/"cause":"drained"/)
  })

  it('is not kept by an upstream that has not answered a dial', async () => {
    const lab = await start(300, () => undefined)
    const dialled = lab.far.nextUpgrade()
    const socket = await sendUpgrade(lab.url)
    await dialled
    const startedAtMs = performance.now()
    lab.process.child.kill('SIGTERM')
    expect((await lab.process.exited).code).toBe(0)
    expect(performance.now() - startedAtMs).toBeLessThan(promised(5_000))
    socket.destroy()
  })

  it('exits at once at a second signal, in the middle of an answer', async () => {
    const lab = await start(60_000)
    await openAnswering(lab)
    lab.process.child.kill('SIGTERM')
    await lab.process.said(/"draining"/)
    const startedAtMs = performance.now()
    lab.process.child.kill('SIGTERM')
    expect((await lab.process.exited).code).toBe(1)
    expect(performance.now() - startedAtMs).toBeLessThan(promised(2_000))
  })
})
