import { fileURLToPath } from 'node:url'

/** Injection token: absolute path of the script an engine runs. */
export const ENGINE_ENTRY = Symbol('engine entry')

// The tests run from the sources, which Node cannot: they start the engine that was built last.
const ENTRY = import.meta.url.endsWith('.ts')
  ? '../../../dist/document/engine/engine.process.js'
  : '../engine/engine.process.js'

export const ENGINE_ENTRY_PATH = fileURLToPath(new URL(ENTRY, import.meta.url))
