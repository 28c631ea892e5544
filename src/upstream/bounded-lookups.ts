import type { ResolveHost } from './ssrf-guard.js'

/**
 * A resolver that is asked for so many names at once and no more. Nothing ends a lookup of the system but its name server,
 * and it keeps one of the process's few threads as long: those whose asker has given up would pile up before all others.
 * Beyond the bound a name is not known at the moment (`EAI_AGAIN`).
 */
export function boundedLookups(resolve: ResolveHost, most: number): ResolveHost {
  let running = 0
  return async (host) => {
    if (running >= most) throw Object.assign(new Error('too many names are being looked up'), { code: 'EAI_AGAIN' })
    running++
    try {
      return await resolve(host)
    } finally {
      running--
    }
  }
}
