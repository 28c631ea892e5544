import assert from 'node:assert/strict'
import OpenAI, { toFile } from 'openai'

const url = process.env.GATEWAY_URL ?? 'http://127.0.0.1:8080'
const key = process.env.GATEWAY_KEY ?? 'sandbox-demo-key'
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key })

const question = [{ role: 'user', content: 'Hello!' }]
const completion = await client.chat.completions.create({ model: 'gpt-4o-mini', messages: question })
console.log(completion.choices[0].message.content)

const speech = await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Hello from the gateway.' })
const file = await toFile(speech, 'hello.mp3')
const transcript = await client.audio.transcriptions.create({ model: 'whisper-1', file })
console.log(transcript.text)
// The lines above are the snippet of docs/clients.md.

assert.match(completion.choices[0].message.content, /Hello!/)
console.log('ok chat')

const stream = await client.chat.completions.create({ model: 'gpt-4o-mini', messages: question, stream: true })
let text = ''
for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
assert.match(text, /Hello!/)
console.log('ok stream')

let cities = 0
const runner = client.chat.completions.runTools({
  model: 'gpt-4o-mini',
  messages: question,
  tools: [
    {
      type: 'function',
      function: {
        name: 'weather',
        parse: JSON.parse,
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        function: () => `${(cities += 1)} degrees`,
      },
    },
  ],
})
assert.ok(await runner.finalContent())
assert.equal(cities, 1)
console.log('ok tools')

assert.ok(file.size > 1000)
console.log('ok speech')

assert.match(transcript.text, /checksum/)
console.log('ok transcription')

const response = await client.responses.create({ model: 'gpt-5-mini', input: 'Hello!' })
assert.match(response.output_text, /Hello!/)
assert.deepEqual((await client.responses.retrieve(response.id)).output, response.output)
const next = client.responses.stream({ model: 'gpt-5-mini', input: 'And now?', previous_response_id: response.id })
const { id, output_text: continued } = await next.finalResponse()
assert.match(continued, /And now\?/)
assert.equal((await client.responses.inputItems.list(id)).data.length, 1)
await client.responses.delete(response.id)
console.log('ok responses')

const { data } = await client.embeddings.create({ model: 'text-embedding-3-small', input: ['Hello!', 'Goodbye!'] })
assert.deepEqual(
  data.map(({ embedding }) => embedding.length),
  [1536, 1536],
)
console.log('ok embeddings')

const models = []
for await (const model of client.models.list()) models.push(model.id)
assert.ok(models.includes('gpt-4o-mini'))
console.log('ok models')
