import type { Logger } from '../observability/logger.js'
import { EngineEnded } from './parser.js'
import { ParserProcess } from './parser-process.js'

const FIRST_REST_MS = 250
const LONGEST_REST_MS = 30_000

/** Keeps processes that die while they start from being started again and again. */
export class RestartBackoff {
  private failures = 0
  private restsUntilMs = -Infinity

  /** 0 = may start now; otherwise how long not, in whole seconds and never less than one. */
  restSeconds(nowMs: number): number {
    return nowMs >= this.restsUntilMs ? 0 : Math.ceil((this.restsUntilMs - nowMs) / 1000)
  }

  failed(nowMs: number): void {
    this.restsUntilMs = nowMs + Math.min(FIRST_REST_MS * 2 ** this.failures, LONGEST_REST_MS)
    this.failures += 1
  }

  succeeded(): void {
    this.failures = 0
    this.restsUntilMs = -Infinity
  }
}

/** Libraries keep things; a fresh process costs a third of a second of one core. */
const DOCUMENTS_PER_ENGINE = 200
/** What one uses that has read nothing but a small PDF. */
const UNUSED_ENGINE_BYTES = 100 * 1_048_576

interface ParserFleetSettings {
  readonly processes: number
  readonly memoryBytes: number
}

/** The engines there are: started when they are needed, replaced when they end, retired when they are worn. */
export class ParserFleet {
  private readonly engines = new Set<ParserProcess>()
  private readonly starting = new Set<ParserProcess>()
  private readonly idle: ParserProcess[] = []
  private readonly backOff = new RestartBackoff()
  private isStopping = false

  /** `onChange` is called whenever a process may have become idle, or the last one has ended. */
  constructor(
    private readonly entry: string,
    private readonly settings: () => ParserFleetSettings,
    private readonly logger: Logger,
    private readonly onChange: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.engines.size === 0
  }

  /** Seconds until one may be started again; 0 = now. */
  get restSeconds(): number {
    return this.backOff.restSeconds(performance.now())
  }

  /** One that is ready and idle, for the caller alone until `giveBack`. */
  take(): ParserProcess | undefined {
    for (;;) {
      const engine = this.idle.pop()
      if (engine?.isLost !== true) return engine
    }
  }

  /** `rssBytes`: of its process after the last document; undefined when that is not known. */
  giveBack(engine: ParserProcess, rssBytes: number | undefined): void {
    if (rssBytes !== undefined) this.backOff.succeeded()
    if (engine.isLost) return
    if (this.isSwollen(rssBytes) || engine.documents >= DOCUMENTS_PER_ENGINE || this.isUnwanted(engine)) engine.kill()
    else this.idle.push(engine)
    this.onChange()
  }

  /** Starts as many as are wanted and allowed, but for those that are on their way already. */
  grow(wanted: number): void {
    while (this.starting.size < wanted && this.engines.size < this.settings().processes && this.restSeconds === 0) {
      if (this.isStopping || !this.start()) return
    }
  }

  /** After a change of the settings; the busy ones are looked at when they are given back. */
  adapt(): void {
    const { processes } = this.settings()
    let remaining = this.lasting
    for (const engine of this.idle.splice(0)) {
      if (this.hasMemoryLimit(engine) && remaining <= processes) {
        this.idle.push(engine)
        continue
      }
      engine.kill()
      remaining -= 1
    }
    this.onChange()
  }

  /** Ends all of them; resolves when nothing is left. */
  async stop(): Promise<void> {
    this.isStopping = true
    const ends = [...this.engines].map((engine) => {
      engine.kill()
      return engine.ended
    })
    await Promise.all(ends)
  }

  /** Less than half of what is granted beyond its own needs is left for the next document. */
  private isSwollen(rssBytes = 0): boolean {
    return rssBytes > (this.settings().memoryBytes + UNUSED_ENGINE_BYTES) / 2
  }

  /** Without those that are about to be gone. */
  private get lasting(): number {
    return [...this.engines].filter((engine) => !engine.isLost).length
  }

  private isUnwanted(engine: ParserProcess): boolean {
    return !this.hasMemoryLimit(engine) || this.lasting > this.settings().processes
  }

  private hasMemoryLimit({ command }: ParserProcess): boolean {
    return command.memoryBytes === this.settings().memoryBytes
  }

  /** False when the system could not even try. */
  private start(): boolean {
    const { memoryBytes } = this.settings()
    try {
      this.watchExit(new ParserProcess({ entry: this.entry, memoryBytes }))
      return true
    } catch (error) {
      this.logFailure(error)
      return false
    }
  }

  private watchExit(engine: ParserProcess): void {
    this.engines.add(engine)
    this.starting.add(engine)
    void engine.ready.then(() => {
      this.starting.delete(engine)
      this.giveBack(engine, undefined)
    })
    void engine.ended.then((exit) => {
      this.engines.delete(engine)
      const place = this.idle.indexOf(engine)
      if (place >= 0) this.idle.splice(place, 1)
      const isUnused = engine.documents === 0 && !exit.isKilled
      if (this.starting.delete(engine) || isUnused) this.logFailure(new EngineEnded(exit))
      // The next document finds the process loaded.
      else this.grow(this.starting.size + 1)
      this.onChange()
    })
  }

  private logFailure(error: unknown): void {
    if (this.isStopping) return
    this.backOff.failed(performance.now())
    this.logger.error({ err: error }, 'a process that reads documents could not be started')
  }
}
