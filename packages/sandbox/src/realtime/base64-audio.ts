/** Decodes base64 of the standard alphabet with its padding, and nothing else; undefined for any other text. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  // Node skips what it does not know; only canonical text comes back the same.
  return bytes.toString('base64') === text ? bytes : undefined
}
