import type { Logger } from '../observability/logger.js'
import { EngineEnded } from './parser.js'
import { ParserProcess, type ParserProgram } from './parser-process.js'

const FIRST_BACKOFF_MS = 250
const MAXIMUM_BACKOFF_MS = 30_000

/** Backoff for processes that exit during their start. */
export class RestartBackoff {
  private failures = 0
  private blockedUntilMs = -Infinity

  /** Whole seconds until the next start is allowed; 0 = now. */
  restSeconds(nowMs: number): number {
    return nowMs >= this.blockedUntilMs ? 0 : Math.ceil((this.blockedUntilMs - nowMs) / 1000)
  }

  failed(nowMs: number): void {
    this.blockedUntilMs = nowMs + Math.min(FIRST_BACKOFF_MS * 2 ** this.failures, MAXIMUM_BACKOFF_MS)
    this.failures += 1
  }

  succeeded(): void {
    this.failures = 0
    this.blockedUntilMs = -Infinity
  }
}

/** Bounds leaks of libraries; a new process costs a third of a second of one core. */
const DOCUMENTS_PER_ENGINE = 200
/** Memory of an engine after a small PDF. */
const IDLE_ENGINE_BYTES = 100 * 1_048_576

interface ParserFleetSettings {
  readonly processes: number
  readonly memoryBytes: number
}

/** The engine processes: started on demand, replaced when they exit, retired after `DOCUMENTS_PER_ENGINE` or when large. */
export class ParserFleet {
  private readonly engines = new Set<ParserProcess>()
  private readonly starting = new Set<ParserProcess>()
  private readonly idle: ParserProcess[] = []
  private readonly backOff = new RestartBackoff()
  private isStopping = false

  /** `onChange` is called whenever a process may have become idle, or the last one has ended. */
  constructor(
    private readonly program: ParserProgram,
    private readonly settings: () => ParserFleetSettings,
    private readonly logger: Logger,
    private readonly onChange: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.engines.size === 0
  }

  /** Seconds until the next start is allowed; 0 = now. */
  get restSeconds(): number {
    return this.backOff.restSeconds(performance.now())
  }

  /** Takes a ready and idle engine, to be returned by `giveBack`. */
  take(): ParserProcess | undefined {
    for (;;) {
      const engine = this.idle.pop()
      if (engine?.isLost !== true) return engine
    }
  }

  /** `rssBytes`: memory of the process after the document; undefined if unknown. */
  giveBack(engine: ParserProcess, rssBytes: number | undefined): void {
    if (rssBytes !== undefined) this.backOff.succeeded()
    if (engine.isLost) return
    if (this.isTooLarge(rssBytes) || engine.documents >= DOCUMENTS_PER_ENGINE || this.isSurplus(engine)) engine.kill()
    else this.idle.push(engine)
    this.onChange()
  }

  /** Starts engines until `wanted` are starting, as far as allowed. */
  grow(wanted: number): void {
    while (this.starting.size < wanted && this.engines.size < this.settings().processes && this.restSeconds === 0) {
      if (this.isStopping || !this.start()) return
    }
  }

  /** Applies changed settings to idle engines; busy ones are checked when given back. */
  adapt(): void {
    const { processes } = this.settings()
    let remaining = this.liveCount
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

  /** Kills all engines; resolves when all have exited. */
  async stop(): Promise<void> {
    this.isStopping = true
    const ends = [...this.engines].map((engine) => {
      engine.kill()
      return engine.exited
    })
    await Promise.all(ends)
  }

  /** Whether more than half of the memory granted beyond the engine's own is in use. */
  private isTooLarge(rssBytes = 0): boolean {
    return rssBytes > (this.settings().memoryBytes + IDLE_ENGINE_BYTES) / 2
  }

  /** Engines that are not about to exit. */
  private get liveCount(): number {
    return [...this.engines].filter((engine) => !engine.isLost).length
  }

  private isSurplus(engine: ParserProcess): boolean {
    return !this.hasMemoryLimit(engine) || this.liveCount > this.settings().processes
  }

  private hasMemoryLimit({ command }: ParserProcess): boolean {
    return command.memoryBytes === this.settings().memoryBytes
  }

  /** False if the process could not be spawned. */
  private start(): boolean {
    const { memoryBytes } = this.settings()
    try {
      this.watchExit(new ParserProcess({ ...this.program, memoryBytes }))
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
    void engine.exited.then((exit) => {
      this.engines.delete(engine)
      const index = this.idle.indexOf(engine)
      if (index >= 0) this.idle.splice(index, 1)
      const isUnused = engine.documents === 0 && !exit.isKilled
      if (this.starting.delete(engine) || isUnused) this.logFailure(new EngineEnded(exit))
      // Replaced at once, so that the next document finds a loaded process.
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
