import { createHash, randomBytes } from 'node:crypto'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { Agent, request } from 'undici'
import type { GatewayFleet } from './gateway-fleet.js'
import type { Random, TaskObject, UpstreamCreate } from './soak-records.js'

/** A caller of the gateway. */
export interface Owner {
  /** The id of the key. */
  readonly id: string
  readonly key: string
}

export const KINDS = ['text2video', 'multi-image2video'] as const
export type Kind = (typeof KINDS)[number]

/** An answer that came whole. Times are `performance.now()`. */
export interface Answer {
  readonly status: number
  readonly isReplay: boolean
  /** What the envelope wraps; undefined for a refusal. */
  readonly data: unknown
  readonly startedAtMs: number
  readonly endedAtMs: number
}

export interface Question {
  readonly owner: Owner
  /** Below `/vidgen/v1/videos/`. */
  readonly path: string
  readonly body?: string
  readonly idempotencyKey?: string
  /** The caller leaves. */
  readonly signal?: AbortSignal
}

const TIMEOUT_MS = 30_000
const PREFIX = '/vidgen/v1/videos/'

/** Asks whichever gateway listens. */
export class SoakCaller {
  private readonly agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })

  constructor(private readonly fleet: GatewayFleet) {}

  /** undefined when the connection was refused, or cut before the answer was whole. */
  async ask({ owner, path, body, idempotencyKey, signal }: Question, random: Random): Promise<Answer | undefined> {
    const url = `${await this.fleet.address(random)}${PREFIX}${path}`
    const startedAtMs = performance.now()
    try {
      const response = await request(url, {
        dispatcher: this.agent,
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Bearer ${owner.key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
      })
      const { data } = (await response.body.json()) as { readonly data?: unknown }
      const isReplay = response.headers['x-idempotent-replay'] === 'true'
      return { status: response.statusCode, isReplay, data, startedAtMs, endedAtMs: performance.now() }
    } catch {
      return undefined
    }
  }

  /** The same, again and again until the answer is whole and no 5xx; for when all is quiet. */
  async insist(question: Question, random: Random): Promise<Answer> {
    for (let left = 20; left > 0; left -= 1) {
      const answer = await this.ask(question, random)
      if (answer !== undefined && answer.status < 500) return answer
    }
    throw new Error(`the gateway does not answer ${question.path}`)
  }

  close(): Promise<void> {
    return this.agent.destroy()
  }
}

export const taskIn = ({ status, data }: Answer): TaskObject | undefined =>
  status === 200 && data !== undefined ? (data as TaskObject) : undefined

export const tasksIn = ({ status, data }: Answer): readonly TaskObject[] =>
  status === 200 && Array.isArray(data) ? (data as TaskObject[]) : []

/** On whatever request comes next, creates and reads alike. */
const FAULTS: readonly Fault[] = [
  'reset',
  'cut',
  'cleancut',
  '500',
  '503',
  '429',
  'html',
  'slow',
  { kind: 'delay', ms: 300 },
  { kind: 'delay', ms: 900 },
]
const SPOILT = 0.07
const FALLEN_BACK = 0.1
const YOUNG_TASKS = 40

/** How long a task takes; a few polls. */
const TASK_MS = { submitted: 400, processing: 900 } as const
const OWNER_DIGITS = 12

interface UpstreamKeys {
  readonly accessKey: string
  readonly secretKey: string
}

/** `nowMs`: the time that the gateways take it to be, by which they sign their tokens. */
export const startUpstream = (access: UpstreamKeys, nowMs: () => number): Promise<VidgenSimulator> =>
  startVidgenSimulator(access, { tokenNowMs: nowMs, taskMs: TASK_MS })

/** Spoils a share of the requests, and lets tasks fall back, until the returned function is called. */
export function spoilRequests(simulator: VidgenSimulator, random: Random): () => void {
  const spoil = (): void => {
    const fault = random.chance(SPOILT) ? random.pick(FAULTS) : undefined
    if (fault !== undefined) simulator.queueFault(fault)
    if (random.chance(FALLEN_BACK)) fallBack(simulator, random)
  }
  simulator.on('request', spoil)
  return () => {
    simulator.off('request', spoil)
    simulator.reset()
  }
}

/** A young task is shown in the state before, as by a replica of the upstream that lags behind; then it goes on. */
function fallBack(simulator: VidgenSimulator, random: Random): void {
  const task = random.pick(simulator.creates.slice(-YOUNG_TASKS))
  if (task !== undefined) simulator.show(task.id, task.status === 'processing' ? 'submitted' : 'processing')
}

/** The tasks it created, by the owner at the beginning of each external id (decision 0010). */
export function createsAt({ creates }: VidgenSimulator, owners: readonly Owner[]): readonly UpstreamCreate[] {
  const byPrefix = new Map(owners.map(({ id }) => [prefixOf(id), id]))
  return creates.map(({ id, externalTaskId, fields }) => {
    const own = externalTaskId.slice(OWNER_DIGITS + 1)
    // Those of creates without one are the gateway's own: 32 hex digits.
    const named = /^[0-9a-f]{32}$/.test(own) ? {} : { externalId: own }
    return {
      taskId: id,
      owner: byPrefix.get(externalTaskId.slice(0, OWNER_DIGITS)) ?? 'nobody',
      marker: /m-[\w-]+$/.exec(String(fields['prompt']))?.[0] ?? '',
      upstreamExternalId: externalTaskId,
      ...named,
    }
  })
}

const prefixOf = (ownerId: string): string => createHash('sha256').update(ownerId).digest('hex').slice(0, OWNER_DIGITS)

/** Attempts follow each other so soon that a run sees events given up. */
export const CALLBACK_SCHEDULE_MS = [0, 150, 400, 900] as const
export const CALLBACK_TIMEOUT_MS = 1000
/** Between two looks for a lost create less than this passes. */
export const RECONCILE_MS = 2000

const OWNERS = 4
const REQUEST_TOKEN = /\/vidgen\/callbacks\/[\w-]{32}/
const SIGNED_TOKEN = /eyJ[\w-]{8,}\.eyJ/

/** Secrets that must not be in a log. */
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
