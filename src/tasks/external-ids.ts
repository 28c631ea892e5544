import { hash, randomBytes } from 'node:crypto'

const OWNER_DIGITS = 12

export const newTaskId = (): string => randomBytes(16).toString('hex')

/** What an upstream must know to call back; nothing else protects the intake. */
export const newCallbackToken = (): string => randomBytes(24).toString('base64url')

export const isCallbackToken = (text: string): boolean => /^[\w-]{32}$/.test(text)

export const newWebhookId = (): string => `msg_${randomBytes(16).toString('hex')}`

/**
 * What the upstream is given as external id. It is always set, so that a create whose answer was lost can be found again,
 * and begins with the owner, as the upstream's ids are unique per account and our callers share one.
 */
export const upstreamExternalId = (ownerId: string, externalTaskId: string | undefined, taskId: string): string =>
  `${hash('sha256', ownerId, 'hex').slice(0, OWNER_DIGITS)}.${externalTaskId ?? taskId}`

/** A task object with the caller's own external id, or an empty one, in the place of ours; all other text stays. */
export const withCallersId = (object: string, ours: string, externalTaskId: string | undefined): string =>
  object.replaceAll(JSON.stringify(ours), JSON.stringify(externalTaskId ?? ''))
