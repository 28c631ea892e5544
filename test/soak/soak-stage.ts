import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { FailingReceiver } from './failing-receiver.js'
import { startUpstream } from './faulty-upstream.js'
import { GatewayFleet } from './gateway-fleet.js'
import { LogWatch } from './log-watch.js'
import { Random } from './random.js'
import { SoakCaller } from './soak-caller.js'
import {
  CALLBACK_TIMEOUT_MS,
  configurationOf,
  makeSecrets,
  secretsByName,
  type SoakSecrets,
} from './soak-configuration.js'
import { SoakLedger } from './soak-ledger.js'
import { openSoakStore, type SoakStore, type StoreName } from './soak-store.js'

/** Everybody who takes part in a run but the workers. */
export interface SoakStage {
  readonly random: Random
  readonly secrets: SoakSecrets
  readonly ledger: SoakLedger
  readonly logWatch: LogWatch
  readonly store: SoakStore
  readonly upstream: VidgenSimulator
  readonly receiver: FailingReceiver
  readonly fleet: GatewayFleet
  readonly caller: SoakCaller
  close(): Promise<void>
}

/** Gateways are ready to be started. To be closed by whoever asked for it, also when the run was given up. */
export async function openStage(storeName: StoreName, seed: number): Promise<SoakStage> {
  const closers: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  const closedAtLast = <Part extends { close(): Promise<void> }>(part: Part): Part => {
    closers.push(() => part.close())
    return part
  }
  try {
    return { ...(await openParts(storeName, seed, closedAtLast)), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function openParts(
  storeName: StoreName,
  seed: number,
  closedAtLast: <Part extends { close(): Promise<void> }>(part: Part) => Part,
): Promise<Omit<SoakStage, 'close'>> {
  const random = new Random(seed)
  const secrets = makeSecrets()
  const ledger = new SoakLedger()
  const logWatch = new LogWatch(secretsByName(secrets))
  const clock = { aheadMs: 0 }
  const nowMs = (): number => Date.now() + clock.aheadMs
  const store = closedAtLast(await openSoakStore(storeName, secrets.database))
  const upstream = closedAtLast(await startUpstream(secrets.upstream, nowMs))
  const receiver = closedAtLast(
    await FailingReceiver.start({
      ...{ ledger, random: random.fork(), secret: secrets.callbacks, canary: secrets.receiver },
      ...{ timeoutMs: CALLBACK_TIMEOUT_MS, nowMs },
    }),
  )
  const fleet = closedAtLast(
    await GatewayFleet.prepare({
      ...{ replicas: store.replicas, variables: store.variables, logWatch, random: random.fork(), clock },
      directory: await mkdtemp(join(tmpdir(), 'gateway-soak-')),
      configuration: configurationOf(secrets, upstream.url, receiver.host),
    }),
  )
  const caller = closedAtLast(new SoakCaller(fleet))
  return { random, secrets, ledger, logWatch, store, upstream, receiver, fleet, caller }
}
