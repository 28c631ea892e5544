import { hash } from 'node:crypto'
import type { JsonTexts } from '../../../core/json-text.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { ModelFacts } from '../../model-facts.js'
import type { Verdicts } from '../../verdicts.js'
import { isAbsent, type Members } from '../members.js'

/**
 * What is to be done with one member of a caller's object: `read` = its translation reads it, `drop` = a hint, anything else is the way
 * out of a refusal. Members that a table lacks are dropped.
 */
export type MemberTable = Readonly<Record<string, 'read' | 'drop' | { readonly refused: string }>>

/** A request in the upstream's dialect while it is made, and whose paths its values have in the caller's. */
export class ChatRequestDraft {
  readonly fields: Record<string, unknown> = {}
  readonly toolNames = new ToolNames()
  private readonly fieldPaths = new Map<string, string>()
  private readonly valuePaths = new Map<object, string>()

  constructor(
    /** The caller's fields. */
    readonly source: Members,
    readonly texts: JsonTexts,
    readonly facts: ModelFacts,
    readonly verdicts: Verdicts,
  ) {}

  /** Whether tokens are to be counted: such a request has no answer, and no maximum for it. */
  get isCount(): boolean {
    return this.source['max_tokens'] === undefined
  }

  /** Sets a field of the upstream; `path`: the caller's. */
  set(name: string, value: unknown, path: string): void {
    this.fields[name] = value
    this.fieldPaths.set(name, path)
  }

  /** The value, which stands for what the caller has at this path. */
  from<Value extends object>(path: string, value: Value): Value {
    this.valuePaths.set(value, path)
    return value
  }

  /** Says of each member of a caller's object what becomes of it; null is as good as absent. */
  checkMembers(value: Members, path: string, table: MemberTable): void {
    for (const name in value) {
      const member = value[name]
      if (isAbsent(member)) continue
      const verdict = Object.hasOwn(table, name) ? table[name] : 'drop'
      if (verdict === 'read' || verdict === undefined) continue
      const memberPath = path === '' ? name : `${path}.${name}`
      if (verdict === 'drop') this.verdicts.drop(memberPath)
      else this.verdicts.refuse(memberPath, verdict.refused)
    }
  }

  /** The caller's path for the upstream's: of the nearest value. */
  callersPath([name = '', ...steps]: readonly string[]): string | undefined {
    let found = this.fieldPaths.get(name)
    let value = this.fields[name]
    for (const step of steps) {
      if (!isRecord(value) && !Array.isArray(value)) break
      value = (value as Members)[step]
      if (typeof value === 'object' && value !== null) found = this.valuePaths.get(value) ?? found
    }
    return found
  }
}

const LONGEST_NAME = 64
const ACCEPTED_NAME = /^[\w-]{1,64}$/
const DIGEST_CHARACTERS = 8

/** Messages allow twice as long names of tools as chat: these get short ones, the same in every request, and are found again by them. */
export class ToolNames {
  private readonly originals = new Map<string, string>()

  shortened(name: string): string {
    if (ACCEPTED_NAME.test(name)) return name
    const beginning = name.slice(0, LONGEST_NAME - DIGEST_CHARACTERS - 1).replace(/[^\w-]/g, '_')
    const short = `${beginning}_${hash('sha256', name).slice(0, DIGEST_CHARACTERS)}`
    this.originals.set(short, name)
    return short
  }

  original(name: string): string {
    return this.originals.get(name) ?? name
  }
}
