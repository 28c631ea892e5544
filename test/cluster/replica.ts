import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../support/free-port.js'
import { type Exit, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import { parseScrape, valueOf } from '../support/prometheus-text.js'
import { sendRaw } from '../support/raw-http.js'

/** A built gateway at an address that it keeps over restarts. */
export class Replica {
  private current: GatewayProcess | undefined

  private constructor(
    readonly url: string,
    /** `host:port`, as the balancer wants it. */
    readonly address: string,
    private readonly metricsUrl: string,
    private readonly directory: string,
    private readonly variables: Readonly<Record<string, string>>,
  ) {}

  /** Nothing runs yet. */
  static async prepare(
    directory: string,
    configuration: object,
    variables: Readonly<Record<string, string>>,
  ): Promise<Replica> {
    const [port, metricsPort] = [String(await freePort()), String(await freePort())]
    await mkdir(directory)
    await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
    const address = `127.0.0.1:${port}`
    return new Replica(`http://${address}`, address, `http://127.0.0.1:${metricsPort}`, directory, {
      PORT: port,
      METRICS_PORT: metricsPort,
      ...variables,
    })
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

  /** Requests of that family (docs/metrics.md) that are under way there. */
  async inFlight(family: string): Promise<number> {
    const { text } = await sendRaw(this.metricsUrl, { method: 'GET', path: '/metrics' })
    return valueOf(parseScrape(text), 'gateway_requests_in_flight', { family }) ?? 0
  }

  /** Whether nobody takes connections there any more, although the process may still be at work. */
  refusesConnections(): Promise<boolean> {
    return sendRaw(this.url, { method: 'GET', path: '/health/live' }).then(
      () => false,
      (error: unknown) => String(error).includes('ECONNREFUSED'),
    )
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
