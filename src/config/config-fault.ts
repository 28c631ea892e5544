/** One thing wrong with the configuration: where, and what would be right. Never a value. */
export interface ConfigFault {
  readonly path: string
  readonly message: string
}

/** Stands for a value whose fault has been reported already, so that no second one follows. */
export const FAULTED = Symbol('faulted')

/** Every fault of one configuration; the message has a line for each, by path and name, never by value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  constructor(readonly faults: readonly ConfigFault[]) {
    const title =
      faults.length === 1 ? 'The configuration has a fault:' : `The configuration has ${faults.length} faults:`
    super([title, ...faults.map((fault) => `  ${fault.path}: ${fault.message}`)].join('\n'))
  }
}

/** Collects faults while a configuration is read. `renames` gives the name to show for a path that came from elsewhere. */
export class FaultList {
  readonly #found: ConfigFault[] = []

  constructor(private readonly renames: ReadonlyMap<string, string> = new Map()) {}

  add(path: string, message: string): void {
    this.#found.push({ path: this.renames.get(path) ?? path, message })
  }

  /** Throws `ConfigError` with everything found so far, if anything was. */
  throwIfAny(): void {
    if (this.#found.length > 0) throw new ConfigError([...this.#found])
  }
}

const SIMPLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/
/** No colon: where the space after one is missing, YAML takes key and value together for the key. */
const PRINTABLE_NAME = /^[A-Za-z0-9._/@-]{1,64}$/

/** Path of `name` inside `parent`; a name that could garble a terminal or a log line is not shown. */
export function fieldPath(parent: string, name: string): string {
  if (SIMPLE_NAME.test(name)) return parent === '' ? name : `${parent}.${name}`
  return PRINTABLE_NAME.test(name) ? `${parent}["${name}"]` : `${parent}["…"]`
}

export function itemPath(parent: string, index: number): string {
  return `${parent}[${index}]`
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
