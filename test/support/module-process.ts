import { spawnSync } from 'node:child_process'

interface ModuleOptions {
  /** Its standard input. */
  readonly input?: string | Uint8Array
  readonly flags?: readonly string[]
}

/** Regular expressions compiled without optimization, as V8 does where a process already holds much of their code. */
export const UNOPTIMIZED = ['--no-regexp-optimization'] as const

/** What a module script prints in a process of its own; errors come behind the output. */
export function runModule(script: string, { input = '', flags = [] }: ModuleOptions = {}): string {
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '--eval', script], {
    input,
    encoding: 'utf8',
  })
  return stdout + stderr
}
