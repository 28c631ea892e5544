import * as nodeModule from 'node:module'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** In newer Node alone (22.10), so that its types do not have them. */
const compileCache = nodeModule as typeof nodeModule & {
  readonly enableCompileCache?: (directory: string) => unknown
  readonly flushCompileCache?: () => void
}

const V8_MAJOR = Number.parseInt(process.versions.v8, 10)

/** Who may write there may write the code itself. As far from `src/` as from `dist/`. */
const CACHE = fileURLToPath(new URL('../../dist/compile-cache', import.meta.url))

/**
 * Sets V8 up for loading the gateway. Call it before its modules are read: what V8 keeps of them for the next start is of use
 * under the same flags alone.
 */
export function beginStart(): void {
  // V8 inlines functions into a hot one until that has 920 bytes of bytecode. The way of a request has more, and every function
  // beyond the budget costs a call: a relayed chat takes a tenth less with this (docs/decisions/0039).
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=2000')
  // The heap may grow to two and a half times what was alive in it before V8 walks through all of it again. By itself V8 allows a tenth or
  // more, and counts the bytes of bodies as growth: a walk for each 25 MB that came in took more time than the bodies (docs/decisions/0044).
  setFlagsFromString('--heap-growing-percent=150')
  // In Node 24 V8 has a limit of its own for bytes outside of the heap, which the flag above does not raise.
  if (V8_MAJOR === 13) setFlagsFromString('--external-memory-accounted-in-global-limit')
  // V8 makes new objects among the old ones where it has seen most of them survive, as those of the first requests do. What they
  // point to then lives until the whole heap is looked through: garbage of 3 MB stayed at every collection of the young (docs/decisions/0046).
  setFlagsFromString('--no-allocation-site-pretenuring')
  // Nearly all that is made now stays. Space for new objects would grow to 32 MB, and be kept (docs/decisions/0043).
  setFlagsFromString('--semi-space-growth-factor=1')
  // Without a folder to write to it does nothing, and says so to nobody.
  if (compileCache.flushCompileCache) compileCache.enableCompileCache?.(CACHE)
}

/** Frees what only the start needed, before the first request comes. */
export function endStart(): void {
  compileCache.flushCompileCache?.()
  setFlagsFromString('--semi-space-growth-factor=2')
  // There is no other way to the collector without a flag on the command line.
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('globalThis.gc') as (() => void) | undefined
  setFlagsFromString('--no-expose-gc')
  collectGarbage?.()
}
