import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

const url = process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080'
const key = process.env.GATEWAY_KEY ?? 'sandbox-demo-key'
const port = Number(process.env.CALLBACK_PORT ?? 9000)
// The gateway's setting callbacks.secret; here that of the sandbox, which prints it at start.
const secret = process.env.CALLBACK_SECRET ?? 'whsec_c2FuZGJveCBkZW1vIGNhbGxiYWNrIHNlY3JldA=='
const tasks = []

const receiver = createServer(async (request, response) => {
  const body = await buffer(request) // the bytes as they came, not parsed JSON
  try {
    tasks.push(new Webhook(secret).verify(body, request.headers))
    response.writeHead(204).end()
  } catch {
    response.writeHead(401).end()
  }
})
receiver.listen(port, '127.0.0.1')
// The lines above are the snippet of docs/clients.md.

const post = (address, body, headers) =>
  fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

const hook = `http://127.0.0.1:${port}/hook`
const create = { prompt: 'A red kite over the sea', callback_url: hook }
const created = await post(`${url}/vidgen/v1/videos/text2video`, create, { authorization: `Bearer ${key}` })
assert.equal(created.status, 200, await created.text())
while (!['succeed', 'failed'].includes(tasks.at(-1)?.task_status))
  await new Promise((resolve) => setTimeout(resolve, 200))
assert.equal(tasks.at(-1).task_status, 'succeed')
console.log('ok callback')

const forged = { 'webhook-id': 'msg_1', 'webhook-timestamp': '1750000182', 'webhook-signature': 'v1,Zm9yZ2Vk' }
assert.equal((await post(hook, { task_status: 'failed' }, forged)).status, 401)
assert.equal(tasks.at(-1).task_status, 'succeed')
console.log('ok forged-refused')
receiver.close()
