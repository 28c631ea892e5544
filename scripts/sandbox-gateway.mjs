// A gateway of its own process in front of the simulators of the sandbox, with an admin key, for tools that call it from outside.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { addressOf } from './gateway-address.mjs'

const { SANDBOX_KEY, startSandbox } = await import('@multi-model-gateway/sandbox/sandbox.js')

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const HOST = '127.0.0.1'

/** Starts it in an empty directory; `close` ends it and the simulators. */
export async function startGateway() {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-sandbox-'))
  const sandbox = await startSandbox(HOST)
  const { server, auth, ...rest } = JSON.parse(sandbox.configText)
  const adminKey = randomBytes(32).toString('base64url')
  const config = { ...rest, server: { ...server, port: 0 }, auth: { ...auth, adminKey } }
  await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(config))
  const child = spawn(process.execPath, [MAIN], { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] })
  const close = async () => {
    if (child.exitCode === null && child.kill()) await once(child, 'exit')
    await sandbox.close()
    await rm(directory, { recursive: true, force: true })
  }
  try {
    return { url: await addressOf(child), key: SANDBOX_KEY, adminKey, close }
  } catch (error) {
    await close()
    throw error
  }
}
