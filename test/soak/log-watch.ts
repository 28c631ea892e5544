import type { Exit } from '../support/gateway-process.js'

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
