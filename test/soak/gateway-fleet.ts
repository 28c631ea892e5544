import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Exit, freePort, type GatewayProcess, runGateway } from '../support/gateway-process.js'
import type { Random } from './soak-records.js'

/** pino's number of a failure of the gateway itself. */
const ERROR_LINE = /^\{"level":(?:50|60),.*$/gm
const SHOWN_CHARACTERS = 600
const MOST_FAULTS = 20

/** Reads what gateways have said: no secret may stand there, and none may have failed by itself. */
export class LogWatch {
  readonly faults: string[] = []
  characters = 0

  /** `secrets`: whatever must never be written down, by name. */
  constructor(private readonly secrets: ReadonlyMap<string, string | RegExp>) {}

  /** All that one process has said, and how it was made to end. */
  read({ code, output, errors }: Exit, signal: 'SIGTERM' | 'SIGKILL' | 'none'): void {
    const text = `${output}\n${errors}`
    this.characters += text.length
    for (const [name, secret] of this.secrets) {
      const isThere = typeof secret === 'string' ? text.includes(secret) : secret.test(text)
      if (isThere) this.add(`a log holds a secret: ${name}`)
    }
    for (const [line] of text.matchAll(ERROR_LINE)) this.add(`a gateway failed: ${line.slice(0, SHOWN_CHARACTERS)}`)
    if (signal === 'none') this.add(`a gateway ended by itself (${String(code)}): ${text.slice(-SHOWN_CHARACTERS)}`)
    if (signal === 'SIGTERM' && code !== 0) this.add(`a gateway did not drain (${String(code)})`)
  }

  private add(fault: string): void {
    if (this.faults.length < MOST_FAULTS) this.faults.push(fault)
  }
}

const LATER = new URL('./later.mjs', import.meta.url).href

const MEMORY_LINE = /^VmRSS:\s+(\d+) kB$/m

export interface FleetOptions {
  readonly replicas: number
  /** Where the replicas have their directories. */
  readonly directory: string
  /** The gateway's configuration, at its own address. */
  readonly configuration: (url: string) => object
  readonly variables: Readonly<Record<string, string>>
  readonly logWatch: LogWatch
  readonly random: Random
  /** By how much gateways started from now on take it to be later than this machine does. */
  readonly clock: { aheadMs: number }
}

interface Replica {
  readonly url: string
  readonly port: number
  readonly directory: string
  process: GatewayProcess | undefined
  isUp: boolean
}

/** Gateways as their operator runs them, each at an address that it keeps. */
export class GatewayFleet {
  kills = 0
  private readonly waiting: (() => void)[] = []
  private isClosed = false

  private constructor(
    private readonly replicas: readonly Replica[],
    private readonly options: FleetOptions,
  ) {}

  /** Nothing runs yet. */
  static async prepare(options: FleetOptions): Promise<GatewayFleet> {
    const replicas: Replica[] = []
    for (let index = 0; index < options.replicas; index += 1) {
      const directory = join(options.directory, `replica-${index}`)
      const port = await freePort()
      const url = `http://127.0.0.1:${port}`
      await mkdir(directory)
      await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(options.configuration(url)))
      replicas.push({ url, port, directory, process: undefined, isUp: false })
    }
    return new GatewayFleet(replicas, options)
  }

  async start(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => this.serve(this.spawn(replica))))
  }

  /** Starts all replicas so much later than they would have been. */
  async leap(byMs: number): Promise<void> {
    this.options.clock.aheadMs += byMs
    await this.start()
  }

  /** Every replica as on a planned restart. */
  async stop(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => this.end(replica, 'SIGTERM')))
  }

  /** One replica after the other, until it is over: a moment of peace, `kill -9` once it has worked, and up again. */
  async killInTurn(everyMs: number, hasWorked: () => Promise<void>, isOver: () => boolean): Promise<void> {
    const { random } = this.options
    for (let turn = 0; !isOver(); turn += 1) {
      const replica = this.replicas[turn % this.replicas.length] as Replica
      await pause(random.between(everyMs / 4, everyMs))
      await hasWorked()
      await this.end(replica, 'SIGKILL')
      // Now and then it does not even get as far as to listen.
      if (random.chance(1 / 6)) {
        this.spawn(replica)
        await pause(random.between(0, 1000))
        await this.end(replica, 'SIGKILL')
      }
      await this.serve(this.spawn(replica))
    }
  }

  /** The address of any replica that listens; waits while none does. */
  async address(random: Random): Promise<string> {
    for (;;) {
      const replica = random.pick(this.replicas.filter(({ isUp }) => isUp))
      if (replica !== undefined) return replica.url
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
  }

  /** Resident memory of each replica in MiB; empty where the system does not tell. */
  async memory(): Promise<readonly number[]> {
    const pids = this.replicas.flatMap(({ process }) => process?.child.pid ?? [])
    const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')))
    return texts.flatMap((text) => {
      const kilobytes = MEMORY_LINE.exec(text)?.[1]
      return kilobytes === undefined ? [] : [Math.round(Number(kilobytes) / 1024)]
    })
  }

  /** Ends what still runs, whatever it does; nothing starts any more. */
  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all(this.replicas.map((replica) => this.end(replica, 'SIGKILL')))
    await rm(this.options.directory, { recursive: true, force: true })
  }

  private spawn(replica: Replica): Replica {
    // A run that was given up may still be on its way here.
    if (this.isClosed) throw new Error('the run is over')
    const { variables, clock } = this.options
    const { aheadMs } = clock
    const later = aheadMs === 0 ? {} : { NODE_OPTIONS: `--import ${LATER}`, SOAK_AHEAD_MS: String(aheadMs) }
    replica.process = runGateway(replica.directory, { PORT: String(replica.port), ...variables, ...later })
    return replica
  }

  private async serve(replica: Replica): Promise<void> {
    const { process } = replica
    await process?.listening()
    if (replica.process !== process) return
    replica.isUp = true
    for (const resume of this.waiting.splice(0)) resume()
  }

  private async end(replica: Replica, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { process } = replica
    if (process === undefined) return
    replica.isUp = false
    replica.process = undefined
    const { child, exited } = process
    // By itself or by another process: the watch decides.
    const endedAlone = child.exitCode !== null || child.signalCode !== null
    child.kill(signal)
    if (signal === 'SIGKILL' && !endedAlone) this.kills += 1
    this.options.logWatch.read(await exited, endedAlone ? 'none' : signal)
  }
}
