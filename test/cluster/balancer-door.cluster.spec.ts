import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { adminCaller, ADMIN_KEY } from '../support/admin-caller.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { type ChatCluster, startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'

/** Anything in 127.0.0.0/8 is this machine; the balancer speaks to the gateways from 127.0.0.1. */
const CALLER = '127.0.0.9'

let cluster: ChatCluster
beforeAll(async () => {
  cluster = await startChatCluster({
    sections: {
      auth: { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY },
      // The caller's own address, too, as where callers come from the network of the balancer: Docker's, or an office's.
      server: { trustedProxies: ['127.0.0.0/8'] },
    },
  })
}, CLUSTER_START_MS)
afterAll(() => cluster.close())

interface Sent {
  readonly method?: string
  /** As it stands in the request line. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** From the caller's own address, and with a target that nobody has put in order. */
async function send(url: string, { method = 'GET', target, headers = {}, body = '' }: Sent) {
  const { hostname, port } = new URL(url)
  const outgoing = request({ hostname, port, method, path: target, headers, localAddress: CALLER, agent: false })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, headers: response.headers, text }
}

const asOperator = { authorization: `Bearer ${ADMIN_KEY}` }

describe('the administration behind the balancer', () => {
  it.each(['GET', 'POST', 'PATCH', 'DELETE', 'PUT'])(
    'is a path that never existed to %s from outside',
    async (method) => {
      const nowhere = await send(cluster.url, { method, target: '/nowhere', headers: asOperator })
      expect(nowhere.status).toBe(404)
      for (const target of ['/admin', '/admin/', '/admin/v1', '/admin/v1/keys', '/admin/v1/keys?limit=1']) {
        const { status, text, headers } = await send(cluster.url, { method, target, headers: asOperator })
        expect([target, status, text]).toEqual([target, 404, nowhere.text])
        expect(headers['content-type']).toBe(nowhere.headers['content-type'])
        expect(headers['x-request-id']).toMatch(/^req_/)
      }
    },
  )

  it.each([
    'http://gateway.example/admin/v1/keys',
    '//admin/v1/keys',
    '/%61dmin/v1/keys',
    '/admin%2fv1/keys',
    '/ADMIN/v1/keys',
    '/./admin/v1/keys',
    '/v1/../admin/v1/keys',
    '/v1/%2e%2e/admin/v1/keys',
    '/;/admin/v1/keys',
    '/\\admin/v1/keys',
    '/?/../admin/v1/keys',
  ])('is not reached by way of %s either', async (target) => {
    const { status, text } = await send(cluster.url, { target, headers: asOperator })
    expect([400, 404]).toContain(status)
    expect(text).not.toContain('"data"')
  })

  it('is served where the operators connect', async () => {
    const { status, json } = await adminCaller(cluster.balancer.operatorsUrl).call('GET', '/keys')
    expect([status, json['data']]).toEqual([200, []])
  })
})

describe('a caller behind the balancer', () => {
  const refused = { authorization: 'Bearer nobodys', 'x-forwarded-for': '198.51.100.1' }

  it('is known by the address it came from, whatever it claims, in the log', async () => {
    const headers = { ...refused, 'x-request-id': 'stranger', 'content-type': 'application/json' }
    await send(cluster.url, { method: 'POST', target: CHAT_PATH, headers, body: chatText('Hi') })
    const line = /\{[^\n]*"requestId":"stranger"[^\n]*\}/
    const [text] = await Promise.any(cluster.replicas.map(({ process }) => process.said(line)))
    expect(JSON.parse(text)).toMatchObject({ status: 401, address: CALLER })
  })

  it('and in the audit log', async () => {
    const { operatorsUrl } = cluster.balancer
    expect((await send(operatorsUrl, { target: '/admin/v1/keys', headers: refused })).status).toBe(401)
    const { json } = await adminCaller(operatorsUrl).call('GET', '/audit')
    expect(json['data']).toContainEqual(
      expect.objectContaining({
        action: 'authorize',
        details: expect.objectContaining({ address: CALLER }) as unknown,
      }),
    )
  })
})
