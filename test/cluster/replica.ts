import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../support/free-port.js'
import { type Exit, type GatewayProcess, runGateway } from '../support/gateway-process.js'

/** A built gateway at an address that it keeps over restarts. */
export class Replica {
  private current: GatewayProcess | undefined

  private constructor(
    readonly url: string,
    /** `host:port`, as the balancer wants it. */
    readonly address: string,
    private readonly directory: string,
    private readonly variables: Readonly<Record<string, string>>,
  ) {}

  /** Nothing runs yet. */
  static async prepare(
    directory: string,
    configuration: object,
    variables: Readonly<Record<string, string>>,
  ): Promise<Replica> {
    const port = String(await freePort())
    await mkdir(directory)
    await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
    return new Replica(`http://127.0.0.1:${port}`, `127.0.0.1:${port}`, directory, { PORT: port, ...variables })
  }

  /** The process that runs. Throws when none does. */
  get process(): GatewayProcess {
    if (this.current === undefined) throw new Error('this replica has been stopped')
    return this.current
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    this.current = runGateway(this.directory, this.variables)
    await this.current.listening()
  }

  /** Writes another configuration and has it read. */
  async reload(configuration: object): Promise<void> {
    await writeFile(join(this.directory, 'gateway.yaml'), JSON.stringify(configuration))
    this.process.child.kill('SIGHUP')
    await this.process.said(/"configuration reloaded"/)
  }

  /** As its operator stops it; resolves when it has ended. */
  stop(): Promise<Exit> {
    return this.end('SIGTERM')
  }

  /** As by `kill -9`. */
  kill(): Promise<Exit> {
    return this.end('SIGKILL')
  }

  async close(): Promise<void> {
    if (this.current !== undefined) await this.kill()
  }

  private async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<Exit> {
    const { child, exited } = this.process
    child.kill(signal)
    const exit = await exited
    this.current = undefined
    return exit
  }
}
