/**
 * What `@jest/globals` exports, as proxies of the objects of the running spec file: a module that imports them is evaluated once
 * and serves every file after it.
 */
const current = (name) => globalThis[Symbol.for('jest-globals')][name]

const forwarding = (name) =>
  new Proxy(() => undefined, {
    get: (_, key) => current(name)[key],
    apply: (_, self, values) => current(name)(...values),
  })

export const afterAll = forwarding('afterAll')
export const afterEach = forwarding('afterEach')
export const beforeAll = forwarding('beforeAll')
export const beforeEach = forwarding('beforeEach')
export const describe = forwarding('describe')
export const expect = forwarding('expect')
export const it = forwarding('it')
export const jest = forwarding('jest')

// Jest leaves frames of packages out when it looks for the line of a spec file that failed.
//# sourceURL=/node_modules/@jest/globals.mjs
