import { randomUUID } from 'node:crypto'
import type { Random } from './random.js'
import { type Kind, KINDS, type Owner } from './soak-caller.js'
import type { CreateAttempt } from './soak-records.js'

/** What stands before the marker in a prompt; most creates have none. The simulator's words. */
const PROMPT_WORDS = {
  '': 64,
  '#fail': 6,
  '#lost': 6,
  '#lost5000': 4,
  '#cut': 3,
  '#cleancut': 2,
  '#stall': 1,
  '#reset': 3,
  '#hang': 1,
  '#slow': 2,
  '#5000': 3,
  '#html': 2,
  '#1303': 2,
  '#1301': 1,
} as const

/** A create as it is sent, as often as it is. */
export interface Order extends Omit<CreateAttempt, 'owner' | 'outcome' | 'taskId'> {
  readonly owner: Owner
  readonly kind: Kind
  readonly body: string
}

/** What a create shall be; the rest is drawn. */
export interface OrderWish {
  readonly owner?: Owner
  readonly externalId?: string
  readonly idempotencyKey?: string
  readonly wantsCallbacks?: boolean
}

/** Addresses of receivers. */
export type CallbackUrls = (random: Random) => string

export function orderOf(wish: OrderWish & { readonly owner: Owner }, callbackUrl: CallbackUrls, random: Random): Order {
  const { externalId } = wish
  const kind = random.pick(KINDS) ?? 'text2video'
  const marker = `m-${randomUUID()}`
  const wantsCallbacks = wish.wantsCallbacks ?? random.chance(0.5)
  const body = JSON.stringify({
    prompt: `${random.weighted(PROMPT_WORDS)} ${marker}`.trim(),
    // An upstream would fetch it; the simulator does not.
    ...(kind === 'text2video' ? {} : { image_list: [{ image: 'https://images.example.com/one.png' }] }),
    ...(externalId === undefined ? {} : { external_task_id: externalId }),
    ...(wantsCallbacks ? { callback_url: callbackUrl(random) } : {}),
  })
  return { ...wish, kind, marker, wantsCallbacks, body }
}
