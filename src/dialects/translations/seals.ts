import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Seals } from '../translator.js'

/** Signatures and seals of the gateway begin with it; the number is that of their form. */
export const SEAL_PREFIX = 'gw1.'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SALT_BYTES = 8
const KEY_BYTES = 32
const CIPHER = 'aes-256-gcm'

/**
 * What a client keeps for the gateway: signatures by which the gateway knows its own, and texts that the client cannot read. Both are
 * bound to the owner: what another one copies is worth nothing. `secret` is the gateway's.
 */
export class OwnerSeals implements Seals {
  private readonly keys = new Map<'signature' | 'seal', Buffer>()

  constructor(
    private readonly secret: Buffer,
    private readonly ownerId: string,
  ) {}

  /** Of a digest of the text, which stands in it: whose text it was can be told later without the text. */
  sign(text: string): string {
    const salt = createHmac('sha256', this.keyFor('signature')).update(text).digest().subarray(0, SALT_BYTES)
    return SEAL_PREFIX + Buffer.concat([salt, this.mac(salt)]).toString('base64url')
  }

  isOwn(signature: string): boolean {
    if (!signature.startsWith(SEAL_PREFIX)) return false
    const bytes = Buffer.from(signature.slice(SEAL_PREFIX.length), 'base64url')
    const mac = this.mac(bytes.subarray(0, SALT_BYTES))
    return bytes.length === SALT_BYTES + mac.length && timingSafeEqual(mac, bytes.subarray(SALT_BYTES))
  }

  seal(text: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.keyFor('seal'), nonce)
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return SEAL_PREFIX + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  open(sealed: string): string | undefined {
    if (!sealed.startsWith(SEAL_PREFIX)) return undefined
    const bytes = Buffer.from(sealed.slice(SEAL_PREFIX.length), 'base64url')
    const start = NONCE_BYTES + TAG_BYTES
    if (bytes.length < start) return undefined
    try {
      const decipher = createDecipheriv(CIPHER, this.keyFor('seal'), bytes.subarray(0, NONCE_BYTES))
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, start))
      return decipher.update(bytes.subarray(start)).toString() + decipher.final('utf8')
    } catch {
      // Of another gateway or another owner, or not whole.
      return undefined
    }
  }

  /** Derived when it is needed: most calls of an owner need none. */
  private keyFor(purpose: 'signature' | 'seal'): Buffer {
    const known = this.keys.get(purpose)
    if (known !== undefined) return known
    const key = Buffer.from(hkdfSync('sha256', this.secret, '', `${purpose} ${this.ownerId}`, KEY_BYTES))
    this.keys.set(purpose, key)
    return key
  }

  private mac(salt: Buffer): Buffer {
    return createHmac('sha256', this.keyFor('signature')).update('own').update(salt).digest().subarray(0, TAG_BYTES)
  }
}
