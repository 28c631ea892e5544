/** How the process of an engine ended. */
export interface EngineExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of what it wrote to standard error. */
  readonly errors: string
  /** The gateway had decided to end it. */
  readonly isKilled: boolean
  /** Why the gateway had to end it: a broken protocol, a document that could not be sent. */
  readonly fault: unknown
  /** It had all of the document it was given last, and was reading. */
  readonly hasBegun: boolean
}

/** The words of the runtime, its heap and the C++ library when an allocation fails; they end the process by themselves. */
const OUT_OF_MEMORY = /out of memory|bad_alloc|allocation failed/i

/** The process ended while it had a document. */
export class EngineEnded extends Error {
  override readonly name = 'EngineEnded'

  constructor(readonly exit: EngineExit) {
    const { code, signal, errors } = exit
    super(`the engine ended with ${signal ?? `code ${String(code)}`}: ${errors}`, { cause: exit.fault })
  }

  /** It ended by no doing of the document: somebody ended it from outside while it was still idle, or nearly so. */
  get isUntouched(): boolean {
    const { isKilled, fault, hasBegun } = this.exit
    return !isKilled && fault === undefined && !hasBegun
  }

  /**
   * The engine's own watch and the kernel's end it by SIGKILL; the runtime takes any of the other signals, often without
   * a word, when the system refuses it memory. It holds no native code of others that could crash for other reasons.
   */
  get isForWantOfMemory(): boolean {
    const { signal, errors, isKilled, fault, hasBegun } = this.exit
    return !isKilled && fault === undefined && hasBegun && (signal !== null || OUT_OF_MEMORY.test(errors))
  }
}
