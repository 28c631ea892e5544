import { randomBytes } from 'node:crypto'
import type { UpstreamKeys } from './faulty-upstream.js'
import type { Owner } from './soak-caller.js'

/** Attempts follow each other so soon that a run sees events given up. */
export const CALLBACK_SCHEDULE_MS = [0, 150, 400, 900] as const
export const CALLBACK_TIMEOUT_MS = 1000
/** Between two looks for a lost create less than this passes. */
export const RECONCILE_MS = 2000

const OWNERS = 4
const REQUEST_TOKEN = /\/vidgen\/callbacks\/[\w-]{32}/
const SIGNED_TOKEN = /eyJ[\w-]{8,}\.eyJ/

/** Everything that nobody must find in a log. */
export interface SoakSecrets {
  readonly owners: readonly Owner[]
  readonly upstream: UpstreamKeys
  /** Signs callbacks. */
  readonly callbacks: string
  /** In the addresses of receivers. */
  readonly receiver: string
  readonly database: string
}

const word = (name: string): string => `${name}-${randomBytes(12).toString('hex')}`

export const makeSecrets = (): SoakSecrets => ({
  owners: Array.from({ length: OWNERS }, (_, index) => ({ id: `caller-${index}`, key: word('key') })),
  upstream: { accessKey: word('access'), secretKey: word('secret') },
  callbacks: `whsec_${randomBytes(24).toString('base64')}`,
  receiver: word('receiver'),
  database: word('password'),
})

/** By the names under which they are missed. */
export const secretsByName = (secrets: SoakSecrets): ReadonlyMap<string, string | RegExp> =>
  new Map<string, string | RegExp>([
    ...secrets.owners.map(({ id, key }): [string, string] => [`the key of ${id}`, key]),
    ['the access key of the upstream', secrets.upstream.accessKey],
    ['the secret key of the upstream', secrets.upstream.secretKey],
    ['a signed token for the upstream', SIGNED_TOKEN],
    ['the secret of callbacks', secrets.callbacks.slice('whsec_'.length)],
    ['the address of a receiver', secrets.receiver],
    ['the password of the database', secrets.database],
    ['the token of a task', REQUEST_TOKEN],
  ])

/** The configuration of a replica at an address, with everything that takes time cut short. */
export const configurationOf =
  (secrets: SoakSecrets, upstreamUrl: string, receiverHost: string) =>
  (url: string): object => {
    const { accessKey, secretKey } = secrets.upstream
    const timeouts = { connectMs: 1000, firstByteMs: 1500, idleMs: 1000, totalMs: 5000 }
    // Two accounts at one upstream, so that a create repeated on the second one would be noticed.
    const channels = ['video-a', 'video-b'].map((id) => ({
      ...{ id, provider: 'vidgen', baseUrl: upstreamUrl, credentials: `${accessKey}|${secretKey}`, timeouts },
    }))
    return {
      server: { publicUrl: url },
      auth: { keys: secrets.owners },
      channels,
      timeouts: { shutdownGraceMs: 10_000 },
      ssrf: { allow: [receiverHost] },
      tasks: { pollIntervalMs: 300, reconcileMs: RECONCILE_MS },
      callbacks: {
        ...{ secret: secrets.callbacks, scheduleMs: CALLBACK_SCHEDULE_MS },
        ...{ timeoutMs: CALLBACK_TIMEOUT_MS, perHost: 16 },
      },
    }
  }
