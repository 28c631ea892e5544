import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type P1Simulator, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { emptyDirectory, type GatewayProcess, runGateway, startParts } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, sendRaw, TEST_KEY } from '../support/gateway.js'
import { p1Channel, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { type HoldingProxy, startHoldingProxy } from '../support/proxies.js'
import { childrenOf, until } from './daemon.js'
import { startClusterPostgres } from './debian-postgres.js'

/** A chat request on a connection of its own; its status, 0 where no connection came about. */
export const chat = (url: string, key = TEST_KEY): Promise<number> =>
  sendRaw(url, { path: CHAT_PATH, headers: { authorization: `Bearer ${key}` }, body: chatText('Hello') }).then(
    ({ status }) => status,
    () => 0,
  )

/** A gateway of several workers in a directory with its configuration. */
export class WorkerLab {
  url = ''
  private current: GatewayProcess | undefined

  constructor(readonly directory: string) {}

  /** Throws before `run`. */
  get gateway(): GatewayProcess {
    if (this.current === undefined) throw new Error('nothing runs yet')
    return this.current
  }

  /** Not listening yet. */
  start(variables: Readonly<Record<string, string>>): void {
    this.current = runGateway(this.directory, variables)
  }

  /** Resolves with the address when all workers listen. */
  async listening(): Promise<string> {
    this.url = await this.gateway.listening()
    return this.url
  }

  /** So many requests, each on a connection of its own; their statuses. */
  chats(count: number, key?: string): Promise<number[]> {
    return Promise.all(Array.from({ length: count }, () => chat(this.url, key)))
  }

  /** Requests that the log has of a worker. */
  servedBy(worker: number): number {
    return [...this.gateway.output().matchAll(new RegExp(`^\\{"worker":${worker},.*"msg":"request"`, 'gm'))].length
  }

  /**
   * Kills the oldest worker; resolves when the one in its place has served, with the statuses of all requests until then.
   */
  async replaceOldest(key?: string): Promise<ReadonlySet<number>> {
    const { gateway } = this
    const [victim = 0] = await childrenOf(gateway.child.pid)
    const seen = gateway.output().length
    process.kill(victim, 'SIGKILL')
    const [, worker] = await until(
      () => Promise.resolve(/"ofWorker":(\d+),.*a worker died/.exec(gateway.output().slice(seen)) ?? undefined),
      () => `no worker died:\n${gateway.output().slice(-2000)}`,
    )
    const servedBefore = this.servedBy(Number(worker))
    const statuses = new Set<number>()
    await until(
      async () => {
        for (const status of await this.chats(2, key)) statuses.add(status)
        return this.servedBy(Number(worker)) > servedBefore || undefined
      },
      () => `the new worker serves nothing:\n${gateway.output().slice(-2000)}`,
    )
    return statuses
  }
}

/** A gateway of two workers on a PostgreSQL of its own, with one simulated upstream. */
export interface WorkerPair {
  readonly lab: WorkerLab
  readonly simulator: P1Simulator
  /** Between the gateway and the upstream. */
  readonly proxy: HoldingProxy
  readonly databaseUrl: string
  close(): Promise<void>
}

/** Resolves when both listen. The test key is in `auth` beside what is given. */
export function startWorkerPair(sections: object = {}, auth: object = {}): Promise<WorkerPair> {
  return startParts(async (closedAtLast) => {
    const postgres = closedAtLast(await startClusterPostgres())
    const databaseUrl = await postgres.emptyDatabase()
    const simulator = closedAtLast(await startP1Simulator({ apiKey: UPSTREAM_KEY }))
    const proxy = closedAtLast(await startHoldingProxy(simulator.port))
    const lab = new WorkerLab(await emptyDirectory())
    const configuration = {
      auth: { keys: [{ id: 'test', key: TEST_KEY }], ...auth },
      channels: [p1Channel('only', simulator, { baseUrl: proxy.url })],
      server: { workers: 2 },
      database: { url: databaseUrl },
      ...sections,
    }
    await writeFile(join(lab.directory, 'gateway.yaml'), JSON.stringify(configuration))
    lab.start({})
    closedAtLast(lab.gateway)
    await lab.listening()
    return { lab, simulator, proxy, databaseUrl }
  })
}
