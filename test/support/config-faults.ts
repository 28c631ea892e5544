import { ConfigError } from '../../src/config/config-fault.js'
import { parseConfig } from '../../src/config/load-config.js'
import type { Variables } from '../../src/config/variable.js'

/** What is wrong with a configuration, each with its place; nothing when it is taken. */
export function faultsOf(yaml: string, env: Variables = {}): string[] {
  try {
    parseConfig(yaml, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ path, message }) => `${path}: ${message}`)
    throw error
  }
  return []
}
