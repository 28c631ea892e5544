import { spawnSync } from 'node:child_process'

/**
 * What a module script prints in a process whose regular expressions are compiled without optimization, as V8 does where a process
 * already holds much of their code. `input` is its standard input; errors come behind the output.
 */
export function runUnoptimized(script: string, input: string | Uint8Array = ''): string {
  const flags = ['--no-regexp-optimization', '--input-type=module', '--eval', script]
  const { stdout, stderr } = spawnSync(process.execPath, flags, { input, encoding: 'utf8' })
  return stdout + stderr
}
