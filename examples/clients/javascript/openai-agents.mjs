import assert from 'node:assert/strict'
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled } from '@openai/agents'
import OpenAI from 'openai'

const url = process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080'
const key = process.env.GATEWAY_KEY ?? 'sandbox-demo-key'
setTracingDisabled(true) // traces would go to the vendor
// For models that the gateway does not serve at /v1/responses, which agents use by default.
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key })
const model = new OpenAIChatCompletionsModel(client, 'gpt-4o-mini')

const result = await run(new Agent({ name: 'Assistant', model }), 'Hello!')
console.log(result.finalOutput)
// The lines above are the snippet of docs/clients.md.

import { OpenAIProvider, Runner, tool } from '@openai/agents'
import { z } from 'zod'

assert.match(result.finalOutput, /Hello!/)
console.log('ok chat')

const streamed = await run(new Agent({ name: 'Assistant', model }), 'Hello!', { stream: true })
let text = ''
for await (const piece of streamed.toTextStream()) text += piece
assert.match(text, /Hello!/)
console.log('ok stream')

let calls = 0
const parameters = z.object({ city: z.string() })
const execute = () => `${(calls += 1)} degrees`
const weather = tool({ name: 'weather', description: 'Weather of a city', parameters, execute })
assert.ok((await run(new Agent({ name: 'Guide', model, tools: [weather] }), 'Weather?')).finalOutput)
assert.equal(calls, 1)
console.log('ok tools')

const outputType = z.object({ name: z.string(), inhabitants: z.number() })
const described = await run(new Agent({ name: 'Guide', model, outputType }), 'Describe Paris.')
assert.equal(typeof described.finalOutput.inhabitants, 'number')
console.log('ok structured')

// By default, and for a model that is named without its class, agents use /v1/responses.
const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client }) })
const guide = new Agent({ name: 'Guide', model: 'gpt-5-mini', tools: [weather] })
const first = await runner.run(guide, 'Weather?')
assert.ok(first.finalOutput)
assert.equal(calls, 2)
const previousResponseId = first.lastResponseId
const next = await runner.run(guide.clone({ tools: [] }), 'Hello!', { stream: true, previousResponseId })
await next.completed
assert.match(next.finalOutput, /Hello!/)
console.log('ok responses')

// A gateway that translates has Claude there, too.
if (process.env.TRANSLATE === 'on') {
  const claude = guide.clone({ model: 'claude-sonnet-4-6' })
  const called = await runner.run(claude, 'Weather?')
  assert.ok(called.finalOutput)
  assert.equal(calls, 3)
  const options = { stream: true, previousResponseId: called.lastResponseId }
  const went = await runner.run(claude.clone({ tools: [] }), 'Hello!', options)
  await went.completed
  assert.match(went.finalOutput, /Hello!/)
  console.log('ok translated')
}
