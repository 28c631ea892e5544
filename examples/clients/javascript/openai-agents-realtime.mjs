import assert from 'node:assert/strict'
import { RealtimeAgent, RealtimeSession } from '@openai/agents/realtime'

const url = process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080'
const key = process.env.GATEWAY_KEY ?? 'sandbox-demo-key'
const agent = new RealtimeAgent({ name: 'Assistant', instructions: 'Be brief.' })
const session = new RealtimeSession(agent, { transport: 'websocket', model: 'gpt-realtime', tracingDisabled: true })
session.on('agent_end', (_context, _agent, text) => console.log(text))
session.on('error', ({ error }) => {
  throw new Error(JSON.stringify(error))
})
// The whole address, as no model is appended to it; ws:// for http://, wss:// for https://.
await session.connect({ apiKey: key, url: `${url.replace('http', 'ws')}/v1/realtime?model=gpt-realtime` })
session.sendMessage('Hello!')
// The lines above are the snippet of docs/clients.md.

const next = (event) => new Promise((resolve) => session.once(event, (...values) => resolve(values)))

let audioBytes = 0
session.on('audio', ({ data }) => (audioBytes += data.byteLength))
assert.match((await next('agent_end'))[2], /Hello!/)
console.log('ok realtime')
assert.ok(audioBytes > 10_000)
console.log('ok realtime-audio')

session.sendMessage('#words=200 Tell me a story.')
await next('audio')
const [interrupted, ended] = [next('audio_interrupted'), next('agent_end')]
session.interrupt()
await interrupted
assert.ok((await ended)[2].split(' ').length < 200)
session.sendMessage('Are you there?')
assert.match((await next('agent_end'))[2], /there/)
console.log('ok interrupt')
session.close()
