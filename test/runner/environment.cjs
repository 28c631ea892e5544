const { findSourceMap } = require('node:module')
const { setTimeout: pause } = require('node:timers/promises')
const { fileURLToPath } = require('node:url')
const { ModernFakeTimers } = require('@jest/fake-timers')
const { ModuleMocker } = require('jest-mock')

/** `at name (place)` or `at place`, the place in TypeScript. */
function frameOf(site) {
  const map = findSourceMap(site.getFileName() ?? '')
  const original = map?.findEntry(site.getLineNumber() - 1, site.getColumnNumber() - 1)
  if (original?.originalSource === undefined) return `    at ${site}`
  const file = original.originalSource.replace(/^file:.*/, fileURLToPath)
  const place = `${file}:${original.originalLine + 1}:${original.originalColumn + 1}`
  return `    at ${`${site}`.replace(/[^\s(]+:\d+:\d+(?=\)?$)/, () => place)}`
}

const runningTimers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

/** Longer than any deadline that a closed gateway leaves behind: attempts of exporters and pools. */
const LEFT_TIMERS_MS = 60_000

/**
 * The process itself as the environment of a spec file. When the file is over, console, environment, `process.exit` and its
 * listeners are put back, and timers that keep a process alive have run out: they must not start new ones under the fake clock
 * of the next.
 */
class NativeEnvironment {
  constructor({ projectConfig }) {
    this.global = globalThis
    this.moduleMocker = new ModuleMocker(globalThis)
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis })
    this.before = {
      console,
      exit: process.exit,
      exitListeners: process.listeners('exit'),
      variables: { ...process.env },
    }
  }

  /** Jest knows the source maps of what it transformed itself only, and Node's own stack traces say `<anonymous>`, which jest hides. */
  setup() {
    this.timersBefore = runningTimers()
    Error.prepareStackTrace = (error, sites) => [`${error}`, ...sites.map(frameOf)].join('\n')
  }

  /** An error of the file, beside those of its tests: one that `teardown` threw would hide them. */
  async handleTestEvent({ name }, state) {
    if (name !== 'run_finish') return
    this.fakeTimersModern.dispose()
    const endsAtMs = performance.now() + LEFT_TIMERS_MS
    const leavesTimers = () => runningTimers() > this.timersBefore
    while (leavesTimers() && performance.now() < endsAtMs) await pause(20)
    if (leavesTimers()) state.unhandledErrors.push(new Error('The file leaves timers that do not end.'))
  }

  teardown() {
    const { console, exit, exitListeners, variables } = this.before
    globalThis.console = console
    process.exit = exit
    for (const listener of process.listeners('exit'))
      if (!exitListeners.includes(listener)) process.off('exit', listener)
    for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name]
    Object.assign(process.env, variables)
  }

  getVmContext() {
    return null
  }
}

module.exports = NativeEnvironment
