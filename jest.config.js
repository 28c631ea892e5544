/** The whole suite: unit specs beside the code, contract, e2e and specification suites under test/. */
export default {
  rootDir: '.',
  roots: ['<rootDir>/src', '<rootDir>/packages', '<rootDir>/test'],
  // Suites of several processes behind a balancer need servers of the system's packages: `npm run test:cluster`.
  testMatch: ['**/*.spec.ts', '!**/*.cluster.spec.ts', '!**/test/additions/**'],
  // Node itself loads spec files and sources: test/runner/ says how.
  runtime: '<rootDir>/test/runner/runtime.cjs',
  testEnvironment: '<rootDir>/test/runner/environment.cjs',
  transform: {},
  injectGlobals: false,
  // Node's sockets and the pipe to jest itself call `process.nextTick`: what they have under way is no timer of a test.
  fakeTimers: { doNotFake: ['nextTick', 'queueMicrotask'] },
  // No `<rootDir>`: it would be part of a pattern, brackets and all.
  modulePathIgnorePatterns: ['/packages/[^/]+/dist/'],
  testTimeout: 120_000,
  maxWorkers: 4,
  // What spec files leave in the memory of a worker ends with it.
  workerIdleMemoryLimit: '1GB',
}
