// What a page needs to use the gateway, without a library. Origins other than localhost must stand in the setting
// server.cors.allowedOrigins. Give pages short-lived keys with limits: everybody who opens them can read the key.

const json = (key) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })

async function checked(response) {
  if (response.ok) return response
  const { error } = await response.json()
  throw new Error(`${response.status}: ${error.message}`)
}

/** Streams a chat; `onText` gets each piece as it comes. Resolves with the whole answer. */
export async function chat(url, key, question, onText = () => undefined) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: json(key),
    body: JSON.stringify({ model: 'gpt-4o-mini', stream: true, messages: [{ role: 'user', content: question }] }),
  }).then(checked)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let [text, rest, isDone] = ['', '', false]
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const frames = `${rest}${read.value}`.split('\n\n')
    rest = frames.pop()
    for (const data of frames.filter((frame) => frame.startsWith('data: ')).map((frame) => frame.slice(6))) {
      if (data === '[DONE]') isDone = true
      else if (JSON.parse(data).error) throw new Error(JSON.parse(data).error.message)
      else {
        const piece = JSON.parse(data).choices[0]?.delta.content ?? ''
        text += piece
        onText(piece)
      }
    }
  }
  // A stream that breaks off has no [DONE].
  if (!isDone) throw new Error('The answer broke off.')
  return text
}

/** Speech as a blob for an audio element: `audio.src = URL.createObjectURL(blob)`. */
export async function speak(url, key, input) {
  const response = await fetch(`${url}/v1/audio/speech`, {
    method: 'POST',
    headers: json(key),
    body: JSON.stringify({ model: 'tts-1', voice: 'alloy', input }),
  }).then(checked)
  return response.blob()
}

/** The words of an audio file: a blob, or a file of an `<input type="file">`. */
export async function transcribe(url, key, file) {
  const body = new FormData()
  body.append('file', file, file.name ?? 'speech.mp3')
  body.append('model', 'whisper-1')
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', headers, body }).then(checked)
  return (await response.json()).text
}

/** Asks a realtime model. Browsers cannot set headers of a WebSocket, so the key is a subprotocol. Resolves with its words. */
export function ask(url, key, question) {
  const address = `${url.replace(/^http/, 'ws')}/v1/realtime?model=gpt-realtime`
  const socket = new WebSocket(address, ['realtime', `openai-insecure-api-key.${key}`])
  const send = (event) => socket.send(JSON.stringify(event))
  return new Promise((resolve, reject) => {
    let words = ''
    socket.onerror = () => reject(new Error('The connection was refused or lost.'))
    socket.onopen = () => {
      send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
      const content = [{ type: 'input_text', text: question }]
      send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
      send({ type: 'response.create' })
    }
    socket.onmessage = ({ data }) => {
      const event = JSON.parse(data)
      if (event.type === 'response.output_text.delta') words += event.delta
      if (event.type === 'error') reject(new Error(event.error.message))
      if (event.type !== 'response.done' && event.type !== 'error') return
      socket.close()
      resolve(words)
    }
  })
}
