import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type P1Simulator, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { emptyDirectory } from '../support/gateway-process.js'
import { TEST_KEY } from '../support/gateway.js'
import { p1Channel, UPSTREAM_KEY } from '../support/p1-gateway.js'
import { type HoldingProxy, startHoldingProxy } from '../support/proxies.js'
import { startParts } from '../support/start-parts.js'
import { startClusterPostgres } from './debian-postgres.js'
import { WorkerLab } from './worker-lab.js'

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
