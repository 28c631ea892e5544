import { afterEach, describe, expect, it } from '@jest/globals'
import { emptyDirectory, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { CONTAINER } from '../support/test-image-lab.js'

const { checkStop } = (await import(new URL('../../scripts/test-image-checks.mjs', import.meta.url).href)) as {
  checkStop: (set: object, service: string, url: string) => Promise<void>
}

const STREAM_OVER = /"requestId":"runs-at-the-stop"/

let sandbox: GatewayProcess
afterEach(() => sandbox.close())

/** Of the set, the container of the sandbox, as a process; `stop` is what the engine does to it. */
async function check(stop: (sandbox: GatewayProcess) => Promise<unknown>): Promise<void> {
  sandbox = runGateway(await emptyDirectory())
  const url = await sandbox.listening()
  const set = {
    run: async (command: string) => {
      if (command === 'stop') await stop(sandbox)
      return sandbox.output()
    },
    container: () => Promise.resolve(CONTAINER),
  }
  await checkStop(set, 'sandbox', url)
}

const end = async ({ child, exited }: GatewayProcess, signal: NodeJS.Signals): Promise<void> => {
  child.kill(signal)
  await exited
}

describe('the stream of npm run test:image that runs at SIGTERM', () => {
  it('is whole where the gateway drains', async () => {
    await expect(check((process) => end(process, 'SIGTERM'))).resolves.toBeUndefined()
  })

  it('is missed where it is cut, whatever the exit code', async () => {
    await expect(check((process) => end(process, 'SIGKILL'))).rejects.toThrow(/a stream was cut/)
  })

  it('shows nothing where it was over before the gateway heard of the stop', async () => {
    const stopLate = async (process: GatewayProcess): Promise<void> => {
      await process.said(STREAM_OVER)
      await end(process, 'SIGTERM')
    }
    await expect(check(stopLate)).rejects.toThrow(/was over before sandbox was told to stop/)
  })
})
