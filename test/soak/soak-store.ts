import { rm } from 'node:fs/promises'
import { KyselyCallbackRepository } from '../../src/tasks/callback.pg.js'
import { KyselyTaskRepository } from '../../src/tasks/task.pg.js'
import { startPostgres } from '../support/postgres.js'
import { dataDirectory, testStore } from '../support/stores.js'
import type { StoreCounts } from './soak-records.js'

export const STORES = ['embedded', 'postgres'] as const
export type StoreName = (typeof STORES)[number]

/** A store as gateways are told of it. */
export interface SoakStore {
  readonly replicas: number
  readonly variables: Readonly<Record<string, string>>
  /** Counts its rows. Only while no gateway runs: an embedded store is one process's. */
  look(): Promise<StoreCounts>
  close(): Promise<void>
}

/** `password` stands in the address of the database, where nobody asks for it: it must not be logged. */
export function openSoakStore(name: StoreName, password: string): Promise<SoakStore> {
  return name === 'embedded' ? embeddedStore() : postgresStore(password)
}

async function embeddedStore(): Promise<SoakStore> {
  const directory = await dataDirectory()
  return {
    replicas: 1,
    variables: { GATEWAY_DATA: directory },
    look: () => countsIn({ directory }),
    close: () => rm(directory, { recursive: true, force: true }),
  }
}

async function postgresStore(password: string): Promise<SoakStore> {
  const server = await startPostgres()
  const url = (await server.emptyDatabase()).replace('postgres@', `postgres:${password}@`)
  return {
    replicas: 2,
    variables: { DATABASE_URL: url },
    look: () => countsIn({ url }),
    close: () => server.close(),
  }
}

async function countsIn(at: Parameters<typeof testStore>[0]): Promise<StoreCounts> {
  const store = testStore(at)
  try {
    const states = await new KyselyTaskRepository(store.database).countByState()
    const { waiting, exhausted } = await new KyselyCallbackRepository(store.database).countOpen()
    return { states, waitingEvents: waiting, exhaustedEvents: exhausted }
  } finally {
    await store.close()
  }
}
