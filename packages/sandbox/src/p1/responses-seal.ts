import { createHmac, randomBytes } from 'node:crypto'

/** One for all simulators: an answer of one replica is taken back by another. */
const KEY = 'simulated upstream'
const PREFIX = 'gAAAAAB'
const NONCE_BYTES = 48
const SIGNATURE_BYTES = 32

const sign = (nonce: Buffer): Buffer => createHmac('sha256', KEY).update(nonce).digest()

/** An opaque text in the place of encrypted reasoning, which only a simulator can make. */
export function seal(): string {
  const nonce = randomBytes(NONCE_BYTES)
  return PREFIX + Buffer.concat([nonce, sign(nonce)]).toString('base64url')
}

/** Whether a simulator made the text and it came back as it was. */
export function isSealed(text: string): boolean {
  if (!text.startsWith(PREFIX)) return false
  const bytes = Buffer.from(text.slice(PREFIX.length), 'base64url')
  const isWhole = bytes.length === NONCE_BYTES + SIGNATURE_BYTES
  return isWhole && sign(bytes.subarray(0, NONCE_BYTES)).equals(bytes.subarray(NONCE_BYTES))
}
