import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import {
  CONTAINER,
  DRAINING,
  inside,
  inspected,
  KEY,
  logged,
  RIGHTS,
  type Rule,
  runTestImage,
  startWellEngine,
  STREAM_OVER,
  type WellEngine,
} from '../support/test-image-lab.js'

const failing = (on: string, says: string): Rule => ({ on, says, fails: true })
const [BUILD, UP] = [' --profile sandbox build ', ' --profile sandbox up ']
const MAKE_KEY = ' exec -T gateway-1 node dist/keys-cli.js create '

/** Up to the end of the second set. */
const WHOLE_RUN_MS = 120_000

let engine: WellEngine
let well: readonly Rule[]
beforeAll(async () => {
  engine = await startWellEngine()
  well = engine.rules
})
afterAll(() => engine.close())

describe('npm run test:image', () => {
  it.each<[string, readonly Rule[], RegExp]>([
    ['the build does', [failing(BUILD, 'process "/bin/sh -c npm ci" did not complete successfully')], /npm ci/],
    [
      'the build cannot reach the network',
      [failing(BUILD, 'npm error Get "https://registry.npmjs.org/": dial tcp: no such host')],
      /registry\.npmjs/,
    ],
    [
      'a container is not healthy, with what it logged',
      [
        failing(UP, 'container gateway-test-image-1-sandbox-1 is unhealthy'),
        { on: ' logs ', says: 'the store cannot be opened' },
      ],
      /is unhealthy[\s\S]*the store cannot be opened/,
    ],
    ['a container has no health', [inspected({ ...CONTAINER, State: {} })], /the health of sandbox/],
    ['a file system can be written to', [inspected({ ...CONTAINER, HostConfig: {} })], /sandbox is read-only/],
    ['a container is root’s', [inspected({ ...CONTAINER, Config: { User: '' } })], /the user of sandbox/],
    ['its process is root', [inside({ ...RIGHTS, user: 0 })], /what the process of sandbox may do/],
    ['its process can write', [inside({ ...RIGHTS, writing: 'written' })], /what the process of sandbox may do/],
    ['its memory has no limit', [inside({ ...RIGHTS, memoryBytes: 2 ** 40 })], /what the process of sandbox may do/],
    [
      'it was killed in its drain',
      [inspected({ ...CONTAINER, State: { ...CONTAINER.State, ExitCode: 137 } })],
      /the exit code of sandbox/,
    ],
    ['SIGTERM came too late to test', [logged(STREAM_OVER, DRAINING)], /was over before sandbox was told/],
    ['a set cannot be taken down', [failing(' down ', 'volume is in use')], /volume is in use/],
  ])('fails where %s, and takes down what is up', async (_what, rules, message) => {
    const { code, output, errors, commands, leftovers } = await runTestImage([...rules, ...well])
    expect([code, output, errors]).toEqual([1, '', expect.stringMatching(message)])
    expect(commands.at(-1)).toMatch(/ --profile sandbox down --volumes /)
    expect(leftovers).toEqual([])
  })

  it.each<[string, Rule, RegExp]>([
    [
      'has no command line for keys',
      failing(MAKE_KEY, "Cannot find module '/app/dist/keys-cli.js'"),
      /Cannot find module/,
    ],
    ['makes keys in another store than its own', { on: MAKE_KEY, says: 'sk-gw-other' }, /the key that was made/],
    [
      'says more than the key where it was asked to be quiet',
      { on: MAKE_KEY, says: `(node) Warning\n${KEY}` },
      /the key that was made/,
    ],
  ])(
    'fails where a container of production %s',
    async (_what, rule, message) => {
      const { code, errors, commands, leftovers } = await runTestImage([rule, ...well])
      expect([code, errors]).toEqual([1, expect.stringMatching(message)])
      expect(commands.at(-1)).toMatch(/ --profile production down --volumes /)
      expect(leftovers).toEqual([])
    },
    WHOLE_RUN_MS,
  )
})
