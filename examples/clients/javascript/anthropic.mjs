import assert from 'node:assert/strict'
import Anthropic from '@anthropic-ai/sdk'

const url = process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080'
const key = process.env.GATEWAY_KEY ?? 'sandbox-demo-key'
const client = new Anthropic({ baseURL: url, apiKey: key }) // without /v1

const question = [{ role: 'user', content: 'Hello!' }]
const message = await client.messages.create({ model: 'claude-sonnet-4-6', max_tokens: 100, messages: question })
console.log(message.content[0].text)
// The lines above are the snippet of docs/clients.md.

assert.match(message.content[0].text, /Hello!/)
console.log('ok chat')

const stream = client.messages.stream({ model: 'claude-sonnet-4-6', max_tokens: 100, messages: question })
let text = ''
stream.on('text', (piece) => (text += piece))
assert.equal((await stream.finalMessage()).stop_reason, 'end_turn')
assert.match(text, /Hello!/)
console.log('ok stream')

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const request = {
  model: 'claude-sonnet-4-6',
  max_tokens: 200,
  tools: [{ name: 'weather', description: 'Weather of a city', input_schema: schema }],
}
const asked = await client.messages.create({ ...request, messages: question, tool_choice: { type: 'any' } })
const call = asked.content.find(({ type }) => type === 'tool_use')
assert.equal(call.name, 'weather')
const result = { type: 'tool_result', tool_use_id: call.id, content: '21 degrees' }
const turns = [...question, { role: 'assistant', content: asked.content }, { role: 'user', content: [result] }]
assert.ok((await client.messages.create({ ...request, messages: turns })).content[0].text)
console.log('ok tools')

const thinking = { type: 'adaptive' }
const thought = await client.messages.create({ ...request, max_tokens: 3000, tools: [], thinking, messages: question })
assert.deepEqual(
  thought.content.map(({ type }) => type),
  ['thinking', 'text'],
)
console.log('ok thinking')

const counted = await client.messages.countTokens({ model: 'claude-sonnet-4-6', messages: question })
assert.ok(counted.input_tokens > 0)
console.log('ok count-tokens')

const models = []
for await (const model of client.models.list()) models.push(model.id)
assert.ok(models.includes('claude-sonnet-4-6'))
console.log('ok models')
