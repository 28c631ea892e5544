/** The whole suite: unit specs beside the code, contract, e2e and specification suites under test/. */
export default {
  rootDir: '.',
  roots: ['<rootDir>/src', '<rootDir>/packages', '<rootDir>/test'],
  // Suites of several processes behind a balancer need servers of the system's packages: `npm run test:cluster`.
  testMatch: ['**/*.spec.ts', '!**/*.cluster.spec.ts', '!**/test/additions/**'],
  testEnvironment: 'node',
  // The packages are tested as sources, like the gateway; Node itself loads what they build.
  testEnvironmentOptions: { customExportConditions: ['@multi-model-gateway/source', 'node', 'node-addons'] },
  modulePathIgnorePatterns: ['<rootDir>/packages/[^/]+/dist/'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          target: 'es2022',
        },
        module: { type: 'es6' },
      },
    ],
  },
  testTimeout: 30_000,
  maxWorkers: 2,
  // Modules of the ESM loader are never given back: a worker that has seen fifty suites spends its time collecting garbage.
  workerIdleMemoryLimit: '700MB',
}
