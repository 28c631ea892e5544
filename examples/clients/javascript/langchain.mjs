import assert from 'node:assert/strict'
import { ChatAnthropic } from '@langchain/anthropic'
import { ChatOpenAI } from '@langchain/openai'

const url = process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080'
const key = process.env.GATEWAY_KEY ?? 'sandbox-demo-key'
const gpt = new ChatOpenAI({ model: 'gpt-4o-mini', apiKey: key, configuration: { baseURL: `${url}/v1` } })
const claude = new ChatAnthropic({ model: 'claude-sonnet-4-6', apiKey: key, anthropicApiUrl: url }) // without /v1

for (const model of [gpt, claude]) console.log((await model.invoke('Hello!')).text)
// The lines above are the snippet of docs/clients.md.

import { tool } from '@langchain/core/tools'
import { z } from 'zod'

for (const model of [gpt, claude]) {
  const reply = await model.invoke('Hello!')
  assert.match(reply.text, /Hello!/)
  assert.ok(reply.usage_metadata.total_tokens > 0)
}
console.log('ok chat')

for (const model of [gpt, claude]) {
  let text = ''
  for await (const chunk of await model.stream('Hello!')) text += chunk.text
  assert.match(text, /Hello!/)
}
console.log('ok stream')

const schema = z.object({ city: z.string() })
const weather = tool(({ city }) => `21 degrees in ${city}`, { name: 'weather', description: 'Weather', schema })
for (const model of [gpt, claude]) {
  const asked = await model.bindTools([weather]).invoke('Weather in Paris?')
  const result = await weather.invoke(asked.tool_calls[0])
  const turns = [{ role: 'user', content: 'Weather in Paris?' }, asked, result]
  assert.ok((await model.bindTools([weather]).invoke(turns)).text)
}
console.log('ok tools')

for (const model of [gpt, claude]) {
  const city = z.object({ name: z.string(), inhabitants: z.number() })
  const described = await model.withStructuredOutput(city).invoke('Describe Paris.')
  assert.equal(typeof described.inhabitants, 'number')
}
console.log('ok structured')

async function useResponses(model) {
  const responses = new ChatOpenAI({
    model,
    apiKey: key,
    configuration: { baseURL: `${url}/v1` },
    useResponsesApi: true,
    reasoning: { effort: 'low', summary: 'auto' },
  })
  const bound = responses.bindTools([weather])
  const asked = await bound.invoke('Weather in Paris?')
  const turns = [{ role: 'user', content: 'Weather in Paris?' }, asked, await weather.invoke(asked.tool_calls[0])]
  assert.ok((await bound.invoke(turns)).text)
  let said = ''
  for await (const chunk of await responses.stream('Hello!')) said += chunk.text
  assert.match(said, /Hello!/)
}

await useResponses('gpt-5-mini')
console.log('ok responses')

// A gateway that translates has Claude there, too.
if (process.env.TRANSLATE === 'on') {
  await useResponses('claude-sonnet-4-6')
  console.log('ok translated')
}
