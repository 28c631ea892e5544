import { execFile } from 'node:child_process'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ADMIN_KEY } from './admin-caller.js'
import { emptyDirectory, type Exit } from './gateway-process.js'
import { dataDirectory } from './stores.js'

const KEYS = fileURLToPath(new URL('../../src/keys-cli.js', import.meta.url))

/** How it ended, and everything it said. */
export type KeysRun = Pick<Exit, 'output' | 'errors'> & { readonly code: unknown }

/** `npm run keys`, after its build. */
export const keys = (
  directory: string,
  words: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<KeysRun> =>
  new Promise((resolve) => {
    const env = { PATH: process.env['PATH'] ?? '', GATEWAY_DATA: join(directory, 'data'), ...variables }
    execFile(process.execPath, [KEYS, ...words], { cwd: directory, env }, (error, output, errors) => {
      resolve({ code: error === null ? 0 : error.code, output, errors })
    })
  })

/** A gateway with issued keys, whose store is asked for them all the time. */
export const CONFIGURATION = (adminKey = ADMIN_KEY, more = ''): string =>
  `auth: { adminKey: "${adminKey}", keyRefreshMs: 100 }\n` +
  `channels: [{ id: first, provider: p1, baseUrl: "http://127.0.0.1:1", credentials: x, models: ["gpt-4o"] }]\n${more}`

/** A new directory of a gateway, with an empty store in it. To be removed by whoever asked for it. */
export async function directoryWithStore(): Promise<string> {
  const directory = await emptyDirectory()
  await rename(await dataDirectory(), join(directory, 'data'))
  return directory
}
