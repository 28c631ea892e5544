import createClient from 'openapi-fetch'
import type { components, paths } from './openapi.js'

type Completion = components['schemas']['ChatCompletion']
type Model = components['schemas']['Model']

interface Answers {
  readonly text: Completion['choices'][number]['message']['content']
  readonly models: readonly Model['id'][]
  readonly refusal: components['schemas']['OpenAIError']['error']['code'] | undefined
}

/** Asks a gateway with the types that were made of its document. */
export async function ask(baseUrl: string, key: string): Promise<Answers> {
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } })
  const messages: components['schemas']['ChatMessage'][] = [{ role: 'user', content: 'Hello' }]
  const chat = await client.POST('/v1/chat/completions', { body: { model: 'gpt-4o-mini', messages } })
  const refused = await client.POST('/v1/chat/completions', { body: { model: 'none', messages } })
  const listed = await client.GET('/v1/models')
  if (chat.data === undefined || listed.data === undefined) throw new Error(JSON.stringify([chat.error, listed.error]))
  if (!('choices' in chat.data)) throw new Error('Events came that nobody asked for.')
  return {
    text: chat.data.choices[0]?.message.content,
    models: listed.data.data.map(({ id }) => id),
    refusal: refused.error?.error.code,
  }
}

/** What the compiler must refuse: types that let everything pass would be none. */
export async function mistakes(): Promise<void> {
  const client = createClient<paths>()
  // @ts-expect-error there is no such path
  await client.GET('/v1/modells')
  // @ts-expect-error the model is missing
  await client.POST('/v1/chat/completions', { body: { messages: [{ role: 'user' }] } })
  // @ts-expect-error a temperature is a number
  await client.POST('/v1/chat/completions', { body: { model: 'a', messages: [{ role: 'user' }], temperature: 'hot' } })
  // @ts-expect-error there is no such format
  await client.POST('/v1/audio/speech', { body: { model: 'a', input: 'b', voice: 'c', response_format: 'midi' } })
}
