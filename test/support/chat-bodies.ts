/** A chat request with one user message. */
export const chat = (
  text: string,
  more: object = {},
): { model: string; messages: { role: 'user'; content: string }[] } => ({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: text }],
  ...more,
})

export const chatText = (text: string, more: object = {}): string => JSON.stringify(chat(text, more))

export const CHAT_PATH = '/v1/chat/completions'
export const SPEECH_PATH = '/v1/audio/speech'

export const speechText = (input: string, more: object = {}): string =>
  JSON.stringify({ model: 'tts-1', input, voice: 'alloy', ...more })
