import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { CALLBACK_SECRET } from './callback-lab.js'
import { CallbackReceiver } from './callback-receiver.js'
import { emptyDirectory, type GatewayProcess, runGateway } from './gateway-process.js'
import { TEST_KEY } from './gateway.js'
import { type HoldingProxy, startHoldingProxy } from './proxies.js'
import { dataDirectory } from './stores.js'
import { VIDGEN_ACCESS, vidgenChannel } from './task-gateways.js'
import { VideoCaller } from './video-caller.js'

/** Gateways in processes of their own, one after the other on the same data; their upstream and receiver live on. */
export class TaskProcesses {
  private readonly processes: GatewayProcess[] = []

  private constructor(
    readonly data: string,
    readonly simulator: VidgenSimulator,
    readonly proxy: HoldingProxy,
    public receiver: CallbackReceiver,
  ) {}

  static async prepare(): Promise<TaskProcesses> {
    const simulator = await startVidgenSimulator(VIDGEN_ACCESS, { taskMs: 'manual' })
    const proxy = await startHoldingProxy(simulator.port)
    return new TaskProcesses(await dataDirectory(), simulator, proxy, await CallbackReceiver.start())
  }

  async start(timeouts: object = {}): Promise<GatewayProcess> {
    const directory = await emptyDirectory()
    const configuration = {
      auth: { keys: [{ id: 'test', key: TEST_KEY }] },
      channels: [vidgenChannel('only', this.proxy)],
      ssrf: { allow: [this.receiver.host] },
      // A process that is killed right after a create is not in the middle of a poll, whose lease would have to run out.
      tasks: { pollIntervalMs: 2000 },
      callbacks: { secret: CALLBACK_SECRET, scheduleMs: [0, 3_600_000] },
      timeouts,
    }
    await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
    const gateway = runGateway(directory, { GATEWAY_DATA: this.data })
    this.processes.push(gateway)
    return gateway
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((gateway) => gateway.close()))
    await this.receiver.close()
    await this.proxy.close()
    await this.simulator.close()
    await rm(this.data, { recursive: true })
  }
}

/** A caller of a gateway, once it listens. */
export const callerOf = async (gateway: GatewayProcess): Promise<VideoCaller> =>
  new VideoCaller({ url: await gateway.listening() })

/** As by `kill -9`; resolves when nothing of it is left. */
export async function kill(gateway: GatewayProcess): Promise<void> {
  gateway.child.kill('SIGKILL')
  await gateway.exited
}
