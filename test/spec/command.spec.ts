import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'

const COMMAND = 'bin/multi-model-gateway.mjs'

/** Node from 22.15 on can begin a process anew; here it says how, and ends. */
const EXECVE = `process.execve = (path, args) => { console.log(JSON.stringify([path, ...args])); process.exit() }`
const IMPORT = ['--import', `data:text/javascript,${encodeURIComponent(EXECVE)}`]

function begun(
  flags: readonly string[],
  environment: Record<string, string> = {},
  args: readonly string[] = [],
): string {
  const options = { env: { PATH: process.env['PATH'], ...environment }, encoding: 'utf8', timeout: 30_000 } as const
  return execFileSync(process.execPath, [...IMPORT, ...flags, COMMAND, ...args], options)
}

describe('The command of the package', () => {
  it('starts by env without options, as BusyBox has none', () => {
    expect(readFileSync(COMMAND, 'utf8').split('\n')[0]).toBe('#!/usr/bin/env node')
  })

  it('begins anew with more memory for new objects, and all that Node was told', () => {
    const [path, ...args] = JSON.parse(begun(['--no-deprecation'])) as string[]
    expect(path).toBe(process.execPath)
    const command = expect.stringContaining(COMMAND)
    expect(args).toEqual([process.execPath, '--max-semi-space-size=64', ...IMPORT, '--no-deprecation', command])
  })

  it('says its version, and what it does not know, without that', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    expect(begun([], {}, ['--version'])).toBe(`${version}\n`)
    const { status, stderr } = spawnSync(process.execPath, [...IMPORT, COMMAND, 'x'], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([2, expect.stringContaining('unknown argument "x"')])
  })

  it.each([
    ['by a flag', ['--max-semi-space-size=32'], {}],
    ['in NODE_OPTIONS', [], { NODE_OPTIONS: '--max-semi-space-size=32' }],
  ])('leaves a size alone that is given %s', (_where, flags, environment) => {
    // The gateway itself says so.
    expect(() => begun(flags, { ...environment, PORT: 'none' })).toThrow('PORT: must be an integer')
  })
})
