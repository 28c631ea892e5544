import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { REALTIME_PATH } from '../support/upgrade-client.js'

let gateway: GatewayProcess | undefined
afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

describe('a process that is told to stop', () => {
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
    expect((await closed)[0]).toBe(1001)
    const { code, output } = await gateway.exited
    expect(code).toBe(0)
    expect(output).toMatch(/"route":"\/v1\/realtime".*"status":101.*"msg":"request"/)
    expect(output).not.toMatch(/"level":(?:50|60)/)
  })
})
