import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { dataDirectory, STORE_START_MS, testStore } from '../support/stores.js'

const MIGRATE = fileURLToPath(new URL('../../src/migrate.js', import.meta.url))

interface Run {
  readonly code: number | string | null | undefined
  readonly output: string
  readonly errors: string
}

/** `npm run migrate`, after its build, in a directory without a configuration. */
const migrate = (directory: string, variables: Readonly<Record<string, string>> = {}): Promise<Run> =>
  new Promise((resolve) => {
    const env = { GATEWAY_DATA: directory, ...variables }
    execFile(process.execPath, [MIGRATE], { cwd: directory, env }, (error, output, errors) => {
      resolve({ code: error === null ? 0 : error.code, output, errors })
    })
  })

let directory: string

beforeAll(async () => {
  directory = await dataDirectory()
}, STORE_START_MS)

afterAll(() => rm(directory, { recursive: true }))

describe('npm run migrate', () => {
  it(
    'brings the store up to date, as often as it is run, and ends',
    async () => {
      for (let time = 0; time < 2; time += 1) {
        const { code, output, errors } = await migrate(directory)
        expect({ code, errors }).toEqual({ code: 0, errors: '' })
        expect(output).toMatch(/The store is up to date\.\n$/)
      }
    },
    STORE_START_MS,
  )

  it(
    'fails with what to do about it while a gateway has the store open',
    async () => {
      const store = testStore({ directory })
      await store.database.open()
      const { code, errors } = await migrate(directory)
      expect(code).toBe(1)
      expect(errors).toMatch(new RegExp(`is in use by process ${process.pid}.*DATABASE_URL\\.\n$`))
      await store.close()
    },
    STORE_START_MS,
  )

  it('fails without a word of the password when PostgreSQL cannot be reached', async () => {
    const url = 'postgres://gateway:canary@127.0.0.1:1/gateway'
    const { code, output, errors } = await migrate(directory, { DATABASE_URL: url })
    expect(code).toBe(1)
    expect(errors).toBe('The database cannot be reached at the moment.\n')
    expect(output + errors).not.toContain('canary')
  })
})
