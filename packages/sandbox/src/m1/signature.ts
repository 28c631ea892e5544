import { createHmac } from 'node:crypto'

/** Signatures are opaque to everyone else, so a constant key is enough to notice an edited block. */
const KEY = 'simulated-thinking-signature'

/** All the simulated model ever thinks. */
export const THINKING_TEXT = 'The caller wants an answer. I shall give one.'

export function signThinking(thinking: string): string {
  return createHmac('sha256', KEY).update(thinking).digest('base64')
}
