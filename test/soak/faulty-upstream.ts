import { createHash } from 'node:crypto'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import type { Random } from './random.js'
import type { Owner } from './soak-caller.js'
import type { UpstreamCreate } from './soak-records.js'

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

export interface UpstreamKeys {
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

/** The tasks it made, told apart by the owner that begins each external id (decision 0010). */
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
