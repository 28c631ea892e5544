/** How TypeScript becomes JavaScript, in the build and under test. `npm run lint` checks the types of both. */
export const SWC_OPTIONS = {
  swcrc: false,
  module: { type: 'es6' },
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: true },
    target: 'es2022',
  },
}
