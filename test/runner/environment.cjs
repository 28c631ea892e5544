const { findSourceMap } = require('node:module')
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

/** The process itself as the environment of a spec file. What a file changed in it is put back when the file is over. */
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
    Error.prepareStackTrace = (error, sites) => [`${error}`, ...sites.map(frameOf)].join('\n')
  }

  teardown() {
    this.fakeTimersModern.dispose()
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
