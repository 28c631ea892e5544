import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Seals } from '../translator.js'

/** Signatures and seals of the gateway begin with it; the number is that of their form. */
export const SEAL_PREFIX = 'gw1.'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SIGNATURE_BYTES = 18
const KEY_BYTES = 32
const CIPHER = 'aes-256-gcm'

/** Whether a signature or a seal is of the gateway's form. No proof of origin: a client that forges it loses only thoughts of its own. */
export const hasMark = (value: unknown): boolean => typeof value === 'string' && value.startsWith(SEAL_PREFIX)

/** For thoughts of an upstream that signs none: the client's dialect wants a signature, and the gateway knows its own by the mark. */
export const madeSignature = (): string => SEAL_PREFIX + randomBytes(SIGNATURE_BYTES).toString('base64url')

/** Texts that a client keeps for the gateway and cannot read, bound to the owner: what another one copies is worth nothing. `secret` is the gateway's. */
export class OwnerSeals implements Seals {
  private derivedKey: Buffer | undefined

  constructor(
    private readonly secret: Buffer,
    private readonly ownerId: string,
  ) {}

  seal(text: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.key(), nonce)
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return SEAL_PREFIX + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  open(sealed: string): string | undefined {
    if (!hasMark(sealed)) return undefined
    const bytes = Buffer.from(sealed.slice(SEAL_PREFIX.length), 'base64url')
    const start = NONCE_BYTES + TAG_BYTES
    if (bytes.length < start) return undefined
    try {
      const decipher = createDecipheriv(CIPHER, this.key(), bytes.subarray(0, NONCE_BYTES))
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, start))
      return decipher.update(bytes.subarray(start)).toString() + decipher.final('utf8')
    } catch {
      // Of another gateway or another owner, or not whole.
      return undefined
    }
  }

  /** Derived when it is needed: most calls of an owner need none. */
  private key(): Buffer {
    this.derivedKey ??= Buffer.from(hkdfSync('sha256', this.secret, '', `seal ${this.ownerId}`, KEY_BYTES))
    return this.derivedKey
  }
}
