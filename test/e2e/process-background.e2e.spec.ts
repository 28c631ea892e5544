import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { sendRaw, TEST_KEY } from '../support/gateway.js'
import { kill } from '../support/process-labs.js'
import { p1Channel, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { directoryWithStore } from '../support/stores.js'
import { recordsOf, recordWhere } from '../support/usage-lab.js'

const REQUEST = { model: 'gpt-5-mini', input: 'Hello', background: true }
const COMMAND = fileURLToPath(new URL('../../dist/store-cli.js', import.meta.url))
const MARK = join('data', 'PENDING-USAGE')

let upstream: Simulator
let directory: string
let gateways: GatewayProcess[]

beforeEach(async () => {
  gateways = []
  upstream = await startP1Simulator({ apiKey: UPSTREAM_KEY })
  directory = await directoryWithStore()
})
afterEach(async () => {
  for (const gateway of gateways) await gateway.close()
  await upstream.close()
  await rm(directory, { recursive: true, force: true })
})

/** One whose configuration by itself needs no store. */
async function start(): Promise<GatewayProcess> {
  const configuration = {
    auth: { keys: [{ id: 'test', key: TEST_KEY }] },
    channels: [p1Channel('first', upstream)],
    prices: [{ models: ['gpt-*'], promptTokens: 1_000_000, completionTokens: 1_000_000 }],
  }
  await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
  const gateway = runGateway(directory)
  gateways.push(gateway)
  return gateway
}

async function begun(gateway: GatewayProcess): Promise<string> {
  const url = await gateway.listening()
  const answer = await sendRaw(url, { path: '/v1/responses', body: JSON.stringify(REQUEST) })
  return (JSON.parse(answer.text) as { readonly id: string }).id
}

describe('a gateway that is killed after a response began in the background', () => {
  it('bills it once when it runs again, although no request uses its store', async () => {
    const first = await start()
    const id = await begun(first)
    await kill(first)

    const next = await start()
    const url = await next.listening()
    await next.said(/opening the store/)
    const name = `task response first ${id}`
    const record = await recordWhere({ url }, (each) => each.id === name)
    expect(record).toMatchObject({ kind: 'task', outcome: 'ok', pricing: 'priced', model: REQUEST.model })
    await sendRaw(url, { method: 'GET', path: `/v1/responses/${id}` })
    await kill(next)

    const last = await start()
    const records = await recordsOf({ url: await last.listening() })
    expect(records.filter(({ kind }) => kind === 'task').map((each) => each.id)).toEqual([name])
  })

  it('opens its store at the start only while a bill may be open', async () => {
    const first = await start()
    const id = await begun(first)
    await recordWhere({ url: await first.listening() }, (each) => each.id === `task response first ${id}`)
    expect(existsSync(join(directory, MARK))).toBe(true)
    first.child.kill('SIGTERM')
    expect(await first.exited).toMatchObject({ code: 0, errors: '' })
    expect(existsSync(join(directory, MARK))).toBe(false)

    const next = await start()
    await next.listening()
    next.child.kill('SIGTERM')
    expect((await next.exited).output).not.toContain('opening the store')
  })

  it('does not start, and says why, where a bill may be open in a store that it cannot open', async () => {
    await rm(join(directory, 'data', 'postgres'), { recursive: true })
    await writeFile(join(directory, 'data', 'postgres'), '')
    await writeFile(join(directory, MARK), '')
    const { code, errors } = await (await start()).exited
    expect([code, errors]).toEqual([1, expect.stringContaining('The store in ./data cannot be read')])
  })
})

describe('a store that `npm run store` has made in a folder', () => {
  const runCommand = async (...words: readonly string[]): Promise<string> => {
    const { PATH = '' } = process.env
    const options = { cwd: directory, env: { PATH } }
    return (await promisify(execFile)(process.execPath, [COMMAND, ...words], options)).stdout
  }
  const copy = (): Promise<string> => runCommand('copy', '--from', 'data', '--to', 'new')
  const restore = async (): Promise<string> => {
    await runCommand('backup', '--from', 'data', '--to', 'gateway.backup')
    return runCommand('restore', '--from', 'gateway.backup', '--to', 'new')
  }
  const useNewFolder = async (): Promise<void> => {
    await rename(join(directory, 'data'), join(directory, 'old'))
    await rename(join(directory, 'new'), join(directory, 'data'))
  }

  it.each([
    ['copied', copy],
    ['restored', restore],
  ])('gets the open bills that it was %s with recorded, although no request uses it', async (_name, move) => {
    const first = await start()
    const id = await begun(first)
    await kill(first)
    await move()
    await useNewFolder()

    const next = await start()
    const url = await next.listening()
    await next.said(/opening the store/)
    const record = await recordWhere({ url }, (each) => each.id === `task response first ${id}`)
    expect(record).toMatchObject({ kind: 'task', outcome: 'ok', pricing: 'priced' })
  })

  it('is not usable before its open bills are marked, and is completed when the command is given again', async () => {
    const first = await start()
    await begun(first)
    await kill(first)
    const mark = join(directory, 'new', 'PENDING-USAGE')
    await mkdir(mark, { recursive: true })
    await expect(copy()).rejects.toThrow('EISDIR')
    await rmdir(mark)
    await expect(copy()).resolves.toContain('Copied to')
    expect(existsSync(mark)).toBe(true)
  })

  it('is not marked where no bill is open', async () => {
    await copy()
    expect(existsSync(join(directory, 'new', 'postgres'))).toBe(true)
    expect(existsSync(join(directory, 'new', 'PENDING-USAGE'))).toBe(false)
  })
})
