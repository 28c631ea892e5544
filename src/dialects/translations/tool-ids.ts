import { hash } from 'node:crypto'

/** What messages upstreams take as the id of a call. */
const ACCEPTED = /^[\w-]{1,64}$/
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** An id that a messages upstream takes: the same one for the call and for its result, in every request. */
export const messagesToolId = (id: string): string => (ACCEPTED.test(id) ? id : `t_${base32(id)}`)

/** Of the SHA-256 of the text: 52 letters. */
function base32(text: string): string {
  let bits = ''
  for (const byte of hash('sha256', text, 'buffer')) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{1,5}/g) ?? []).map((five) => ALPHABET[parseInt(five.padEnd(5, '0'), 2)]).join('')
}
