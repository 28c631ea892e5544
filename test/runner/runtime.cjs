const { register } = require('node:module')
const { pathToFileURL } = require('node:url')
const { setFlagsFromString } = require('node:v8')
const { default: JestRuntime } = require('jest-runtime')

process.setSourceMapsEnabled(true)
// No embedded store of a test lives long enough to earn back what the optimizing compiler of WebAssembly takes: half its time.
setFlagsFromString('--liftoff-only')
register('./typescript.mjs', pathToFileURL(__filename))

const CIRCUS_HANDLERS = Symbol.for('EVENT_HANDLERS')
const TEST_TIMEOUT = Symbol.for('TEST_TIMEOUT_SYMBOL')

/**
 * Runs spec files in Node's own realm and module cache, so that a worker links and evaluates each module once and not once per
 * spec file. Whatever a module keeps at its top level is shared by the spec files of a worker.
 */
class NativeRuntime extends JestRuntime {
  /** Circus keeps the tests of one file in its module: each file gets a new one. */
  requireInternalModule(path) {
    delete globalThis[CIRCUS_HANDLERS]
    delete globalThis[TEST_TIMEOUT]
    delete require.cache[path]
    return require(path)
  }

  setGlobalsForRuntime(globals) {
    globalThis[Symbol.for('jest-globals')] = { ...globals, jest: this.jestGlobals.jestObjectFor(this._testPath) }
  }

  /** Jest would load what is asked for here into a realm of its own. */
  installGetBuiltinModule() {
    return undefined
  }

  unstable_shouldLoadAsEsm() {
    return true
  }

  unstable_importModule(path) {
    return import(pathToFileURL(path))
  }
}

exports.default = NativeRuntime
exports.__esModule = true
