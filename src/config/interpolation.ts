import { FAULTED, fieldPath, isMap, itemPath, type FaultList } from './config-fault.js'
import { readVariable, type Variables } from './variable.js'

/** Aliases may repeat a block for hundreds of channels, but not multiply without end. */
const MAX_VALUES = 200_000
/** The contract is five levels deep; an alias inside its own anchor would never end. */
const MAX_DEPTH = 32

/** In this order: the escape `$${`, a well-formed placeholder, any other `${`. */
const PLACEHOLDER = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}|\$\{/g

interface Walk {
  readonly env: Variables
  readonly faults: FaultList
  visited: number
}

/**
 * Returns a copy of a parsed document in which `${NAME}` and `${NAME:-default}` inside strings are replaced, by the
 * variable or the file that `NAME_FILE` names. It works on values, not on the file's text, so a secret may hold any
 * character. Keys are left alone, and what was put in is not
 * looked at again. `$${` stands for `${`. A string that comes out empty counts as not given (null).
 */
export function interpolate(document: unknown, env: Variables, faults: FaultList): unknown {
  return walk(document, '', 0, { env, faults, visited: 0 })
}

function walk(value: unknown, path: string, depth: number, state: Walk): unknown {
  state.visited += 1
  if (state.visited === MAX_VALUES) state.faults.add('document', `must not hold more than ${MAX_VALUES} values`)
  if (state.visited >= MAX_VALUES) return FAULTED
  if (depth > MAX_DEPTH) return fault(path, `must not be nested deeper than ${MAX_DEPTH} levels`, state)
  if (typeof value === 'string') return replace(value, path, state)
  if (Array.isArray(value)) return value.map((item, index) => walk(item, itemPath(path, index), depth + 1, state))
  if (!isMap(value)) return value
  const entries = Object.entries(value).map(([name, item]): [string, unknown] => [
    name,
    walk(item, fieldPath(path, name), depth + 1, state),
  ])
  return Object.fromEntries(entries)
}

function replace(text: string, path: string, state: Walk): unknown {
  if (!text.includes('${')) return text
  const problems: string[] = []
  const replaced = text.replace(PLACEHOLDER, (match: string, name?: string, fallback?: string) => {
    if (match === '$${') return '${'
    if (name === undefined) {
      problems.push('holds a malformed placeholder; write ${NAME} or ${NAME:-default}, and $${ for a literal ${')
      return ''
    }
    const { value = fallback, problem } = readVariable(state.env, name)
    if (problem !== undefined) problems.push(problem)
    else if (value === undefined) problems.push(`the environment variable ${name} is not set`)
    return value ?? ''
  })
  for (const problem of problems) state.faults.add(path, problem)
  if (problems.length > 0) return FAULTED
  return replaced === '' ? null : replaced
}

function fault(path: string, message: string, state: Walk): typeof FAULTED {
  state.faults.add(path, message)
  return FAULTED
}
