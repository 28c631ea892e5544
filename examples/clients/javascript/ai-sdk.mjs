import assert from 'node:assert/strict'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText } from 'ai'

const url = process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080'
const key = process.env.GATEWAY_KEY ?? 'sandbox-demo-key'
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: key })
const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey: key }) // with /v1, unlike @anthropic-ai/sdk
const gateway = createOpenAICompatible({
  name: 'gateway',
  baseURL: `${url}/v1`,
  apiKey: key,
  supportsStructuredOutputs: true,
})

// openai(…) alone calls /v1/responses, where the gateway must serve the model.
const responses = openai('gpt-5-mini')
const models = [openai.chat('gpt-4o-mini'), anthropic('claude-sonnet-4-6'), gateway('gpt-4o-mini'), responses]
for (const model of models) console.log((await generateText({ model, prompt: 'Hello!' })).text)
// The lines above are the snippet of docs/clients.md.

import { embedMany, generateSpeech, transcribe, isStepCount, Output, streamText, tool } from 'ai'
import { z } from 'zod'

for (const model of models) assert.match((await generateText({ model, prompt: 'Hello!' })).text, /Hello!/)
console.log('ok chat')

for (const model of models) {
  let text = ''
  for await (const piece of streamText({ model, prompt: 'Hello!' }).textStream) text += piece
  assert.match(text, /Hello!/)
}
console.log('ok stream')

const inputSchema = z.object({ city: z.string() })
for (const model of models) {
  let calls = 0
  const weather = tool({ description: 'Weather', inputSchema, execute: () => `${(calls += 1)} degrees` })
  const { text } = await generateText({ model, prompt: 'Weather?', tools: { weather }, stopWhen: isStepCount(3) })
  assert.ok(text && calls === 1)
}
console.log('ok tools')

for (const model of models) {
  const schema = z.object({ name: z.string(), inhabitants: z.number().int() })
  const { output } = await generateText({ model, prompt: 'Describe Paris.', output: Output.object({ schema }) })
  assert.equal(typeof output.inhabitants, 'number')
}
console.log('ok structured')

const first = await generateText({ model: responses, prompt: 'Hello!' })
const { responseId: previousResponseId } = first.providerMetadata.openai
const providerOptions = { openai: { previousResponseId, reasoningEffort: 'low', reasoningSummary: 'auto' } }
const next = await generateText({ model: responses, prompt: 'And now?', providerOptions })
assert.match(next.text, /And now\?/)
assert.ok(next.reasoningText && next.usage.outputTokenDetails.reasoningTokens > 0)
console.log('ok responses')

// A gateway that translates has Claude there, too.
if (process.env.TRANSLATE === 'on') {
  const model = openai('claude-sonnet-4-6')
  // The library knows by their names which models think.
  const providerOptions = { openai: { forceReasoning: true, reasoningEffort: 'low', reasoningSummary: 'auto' } }
  let calls = 0
  const weather = tool({ description: 'Weather', inputSchema, execute: () => `${(calls += 1)} degrees` })
  const asked = { model, prompt: 'Weather?', tools: { weather }, stopWhen: isStepCount(3), providerOptions }
  const { text, reasoningText } = await generateText(asked)
  assert.ok(text && reasoningText && calls === 1)
  let said = ''
  for await (const piece of streamText({ model, prompt: 'Hello!' }).textStream) said += piece
  assert.match(said, /Hello!/)
  console.log('ok translated')
}

const texts = { model: openai.embedding('text-embedding-3-small'), values: ['Hello!', 'Goodbye!'] }
assert.equal((await embedMany(texts)).embeddings[1].length, 1536)
console.log('ok embeddings')

const { audio } = await generateSpeech({ model: openai.speech('tts-1'), text: 'Hello!', voice: 'alloy' })
assert.ok(audio.uint8Array.length > 1000)
console.log('ok speech')

const heard = await transcribe({ model: openai.transcription('whisper-1'), audio: audio.uint8Array })
assert.match(heard.text, /checksum/)
console.log('ok transcription')
