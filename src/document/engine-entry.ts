import { createRequire } from 'node:module'

/** Injection token: absolute path of the script an engine runs. */
export const ENGINE_ENTRY = Symbol('engine entry')

const resolved = createRequire(import.meta.url).resolve('@multi-model-gateway/document-engine/process.js')

/** Node runs what is built: tests find the package's sources, and start the engine that was built last. */
export const ENGINE_ENTRY_PATH = resolved.replace(/src([\\/])process\.ts$/, 'dist$1process.js')
