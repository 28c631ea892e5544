// Runs in a browser: both official SDKs, bundled as an application's bundler would.
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'

globalThis.useSdks = async ({ url, key }) => {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, dangerouslyAllowBrowser: true })
  const anthropic = new Anthropic({ baseURL: url, apiKey: key, dangerouslyAllowBrowser: true })
  const messages = [{ role: 'user', content: 'Hello' }]
  let streamed = ''
  const chunks = await openai.chat.completions.create({ model: 'gpt-4o-mini', messages, stream: true })
  for await (const chunk of chunks) streamed += chunk.choices[0]?.delta.content ?? ''
  const stream = anthropic.messages.stream({ model: 'claude-sonnet-4-6', max_tokens: 100, messages })
  const { data } = await anthropic.models.list()
  return { streamed, message: await stream.finalText(), model: data[0].type }
}

/** What each attempt of a page comes to: `read`, or the name of the error. */
globalThis.tryAll = async ({ url, key }) => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] })
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=gpt-realtime`, [
    `openai-insecure-api-key.${key}`,
  ])
  const opened = new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = () => reject(new TypeError('refused'))
  })
  const attempts = [
    fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body }),
    fetch(`${url}/v1/models`, { headers }),
    fetch(`${url}/health/live`),
    opened,
  ]
  const outcomes = await Promise.allSettled(attempts)
  return outcomes.map(({ reason }) => reason?.name ?? 'read')
}

/** What a page can read of a refusal. */
globalThis.readRefusal = async ({ url }) => {
  const response = await fetch(`${url}/v1/chat/completion`, { headers: { authorization: 'Bearer unknown' } })
  const { error } = await response.json()
  return { message: error.message, requestId: response.headers.get('x-request-id') }
}
