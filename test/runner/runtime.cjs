const asyncHooks = require('node:async_hooks')
const { register } = require('node:module')
const { pathToFileURL } = require('node:url')
const { default: JestRuntime } = require('jest-runtime')

process.setSourceMapsEnabled(true)
register('./typescript.mjs', pathToFileURL(__filename))

/** By description: circus makes a symbol of its own for its state each time it is loaded. */
const CIRCUS_STATE = new Set(['EVENT_HANDLERS', 'TEST_TIMEOUT_SYMBOL', 'JEST_STATE_SYMBOL'])

/**
 * Which test runs, in place of circus' AsyncLocalStorage: the tests of a file run one after the other, and the promise hooks
 * that Node 20 has for the latter take a tenth of the time of everything under test. A late failure is attributed to the test that
 * is running by then, and `it.concurrent` would mix its tests up: there is none.
 */
class SequentialStorage {
  #store

  getStore() {
    return this.#store
  }

  async run(store, work) {
    const before = this.#store
    this.#store = store
    try {
      return await work()
    } finally {
      this.#store = before
    }
  }
}

/**
 * Runs spec files in Node's own realm and module cache, so that a worker links and evaluates each module once and not once per
 * spec file. Whatever a module keeps at its top level is shared by the spec files of a worker.
 */
class NativeRuntime extends JestRuntime {
  /** Circus keeps the tests of one file in its module: each file gets a new one, and nothing holds those of the last. */
  requireInternalModule(path) {
    for (const symbol of Object.getOwnPropertySymbols(globalThis))
      if (CIRCUS_STATE.has(symbol.description)) delete globalThis[symbol]
    delete require.cache[path]
    // A getter in newer Nodes.
    const before = Object.getOwnPropertyDescriptor(asyncHooks, 'AsyncLocalStorage')
    Object.defineProperty(asyncHooks, 'AsyncLocalStorage', { value: SequentialStorage, configurable: true })
    try {
      return require(path)
    } finally {
      Object.defineProperty(asyncHooks, 'AsyncLocalStorage', before)
    }
  }

  setGlobalsForRuntime(globals) {
    for (const name of ['it', 'test']) delete globals[name].concurrent
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
