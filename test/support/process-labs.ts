import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import type { UsageRecord } from '../../src/core/usage-record.js'
import { KyselyUsageRepository } from '../../src/usage/usage.pg.js'
import { CALLBACK_SECRET, CallbackReceiver } from './callback-lab.js'
import { emptyDirectory, type GatewayProcess, runGateway } from './gateway-process.js'
import { CHAT_PATH, chatText, sendRaw, TEST_KEY } from './gateway.js'
import { p1Channel, UPSTREAM_KEY } from './provider-gateways.js'
import { type HoldingProxy, startHoldingProxy } from './proxies.js'
import { dataDirectory, testStore } from './stores.js'
import { VIDGEN_ACCESS, vidgenChannel } from './task-gateways.js'
import { VideoCaller } from './video-caller.js'

/** Gateways in processes of their own, one after the other on the same data; their upstream and receiver live on. */
export class TaskProcesses {
  private readonly processes: GatewayProcess[] = []

  private constructor(
    readonly data: string,
    readonly simulator: VidgenSimulator,
    readonly proxy: HoldingProxy,
    public receiver: CallbackReceiver,
  ) {}

  static async prepare(): Promise<TaskProcesses> {
    const simulator = await startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' })
    const proxy = await startHoldingProxy(simulator.port)
    return new TaskProcesses(await dataDirectory(), simulator, proxy, await CallbackReceiver.start())
  }

  async start(timeouts: object = {}): Promise<GatewayProcess> {
    const directory = await emptyDirectory()
    const configuration = {
      auth: { keys: [{ id: 'test', key: TEST_KEY }] },
      channels: [vidgenChannel('only', this.proxy)],
      ssrf: { allow: [this.receiver.host] },
      // A process that is killed right after a create is not in the middle of a poll, whose lease would have to run out.
      tasks: { pollIntervalMs: 2000 },
      callbacks: { secret: CALLBACK_SECRET, scheduleMs: [0, 3_600_000] },
      timeouts,
    }
    await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
    const gateway = runGateway(directory, { GATEWAY_DATA: this.data })
    this.processes.push(gateway)
    return gateway
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((gateway) => gateway.close()))
    await this.receiver.close()
    await this.proxy.close()
    await this.simulator.close()
    await rm(this.data, { recursive: true })
  }
}

/** A caller of a gateway, once it listens. */
export const callerOf = async (gateway: GatewayProcess): Promise<VideoCaller> =>
  new VideoCaller({ url: await gateway.listening() })

/** As by `kill -9`; resolves when nothing of it is left. */
export async function kill(gateway: GatewayProcess): Promise<void> {
  gateway.child.kill('SIGKILL')
  await gateway.exited
}

/** Longer than any test: nothing is written because its time has come. */
export const NEVER_MS = 60_000

/** Gateways in processes of their own, in front of simulators that outlive them. */
export class UsageProcesses {
  private readonly processes: GatewayProcess[] = []
  private readonly directories: string[] = []

  private constructor(
    readonly p1: Simulator,
    readonly vidgen: VidgenSimulator,
  ) {}

  static async prepare(): Promise<UsageProcesses> {
    const p1 = await startP1Simulator({ apiKey: UPSTREAM_KEY })
    return new UsageProcesses(p1, await startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' }))
  }

  /** One that knows chat and videos; its data lie in `directory`, where it may be started again. */
  async start(
    sections: object,
    directory?: string,
    variables: Readonly<Record<string, string>> = {},
  ): Promise<GatewayProcess> {
    const place = directory ?? (await emptyDirectory())
    this.directories.push(place)
    const configuration = {
      auth: { keys: [{ id: 'test', key: TEST_KEY }] },
      channels: [p1Channel('first', this.p1), vidgenChannel('videos', this.vidgen)],
      tasks: { pollIntervalMs: 50 },
      ...sections,
    }
    await writeFile(join(place, 'gateway.yaml'), JSON.stringify(configuration))
    const gateway = runGateway(place, variables)
    this.processes.push(gateway)
    return gateway
  }

  /** Ends all processes. */
  async end(): Promise<void> {
    for (const gateway of this.processes.splice(0)) await gateway.close()
    for (const directory of this.directories.splice(0)) await rm(directory, { recursive: true, force: true })
  }

  async close(): Promise<void> {
    await this.end()
    await this.p1.close()
    await this.vidgen.close()
  }
}

/** So many chats, twenty at a time; resolves with their request ids. */
export async function chats(url: string, count: number, name = 'process'): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `${name}-${index}`)
  for (let at = 0; at < count; at += 20) {
    const send = (id: string): Promise<unknown> =>
      sendRaw(url, { path: CHAT_PATH, body: chatText('Hello'), headers: { 'x-request-id': id } })
    await Promise.all(ids.slice(at, at + 20).map(send))
  }
  return ids
}

export type StoreAt = { readonly url: string } | { readonly directory: string }

/** What a store has that no process uses at the moment, or a server. */
export async function storedIn(at: StoreAt): Promise<readonly UsageRecord[]> {
  const store = testStore(at)
  try {
    const page = { ownerId: 'test', fromMs: 0, toMs: Date.now() * 2, limit: 10_000 }
    return await new KyselyUsageRepository(store.database).list(page)
  } finally {
    await store.close()
  }
}

export const requestIds = (records: readonly UsageRecord[]): string[] =>
  records.map(({ requestId }) => requestId ?? '').sort()
