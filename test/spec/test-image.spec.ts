import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { type Rule, runTestImage, startWellEngine, type WellEngine } from '../support/test-image-lab.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What an operator has in a checkout, and no test may write. */
const inCheckout = (): boolean[] => ['secrets', 'gateway.yaml', '.env'].map((name) => existsSync(join(ROOT, name)))

/** For some forty commands, and a sandbox that opens its store, beside other suites. */
const WHOLE_RUN_MS = 120_000

const NO_DAEMON: Rule = {
  on: '^info$',
  says: 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
  fails: true,
}
const NO_IMAGE: Rule = { on: '^image inspect ', fails: true }
const unreachable = (image = ''): Rule => ({
  on: `^pull ${image}`,
  says: 'Error response from daemon: Get "https://registry.example/v2/": dial tcp: lookup registry.example: no such host',
  fails: true,
})

let engine: WellEngine
let well: readonly Rule[]
beforeAll(async () => {
  engine = await startWellEngine()
  well = engine.rules
})
afterAll(() => engine.close())

describe('npm run test:image', () => {
  it(
    'builds, asks and takes down both sets, apart from whatever else runs and outside of the checkout',
    async () => {
      const before = inCheckout()
      const { code, output, errors, commands, leftovers } = await runTestImage(well)
      expect([code, errors]).toEqual([0, ''])
      expect(output).toMatch(/^docker-compose\.yml, sandbox: built .*\ndocker-compose\.yml, production: built .*\n$/)
      const sets = commands.filter((command) => / (?:build|up|down) /.test(command))
      expect(sets.map((command) => command.split(' --profile ')[1])).toEqual([
        'sandbox build sandbox',
        'sandbox up --detach --no-build --wait --wait-timeout 300',
        'sandbox down --volumes --remove-orphans',
        'production build gateway-1',
        'production up --detach --no-build --wait --wait-timeout 300',
        'production down --volumes --remove-orphans',
      ])
      for (const command of sets) expect(command).toMatch(/ --project-name gateway-test-image-\d+ /)
      expect([leftovers, inCheckout()]).toEqual([[], before])
    },
    WHOLE_RUN_MS,
  )

  it(
    'takes a Compose that stands alone where the engine has none',
    async () => {
      const alone: readonly Rule[] = [
        { on: '^compose ', fails: true },
        { on: '^version --short$', says: 'v2.26.1' },
      ]
      const { code, commands } = await runTestImage([...alone, ...well])
      expect([code, commands.filter((command) => command.startsWith('--file docker-compose.yml')).length > 5]).toEqual([
        0,
        true,
      ])
    },
    WHOLE_RUN_MS,
  )

  it.each<[string, readonly Rule[], readonly string[]]>([
    ['there is no engine', [], []],
    ['the daemon of one does not respond', [NO_DAEMON], ['docker', 'podman']],
  ])('says that it was not run where %s', async (_what, rules, engines) => {
    const { code, output, commands } = await runTestImage(rules, engines)
    expect([code, output]).toEqual([0, expect.stringMatching(/^NOT RUN: .*: no container engine \(docker: .*\)\.\n$/)])
    expect(commands.filter((command) => command !== 'info')).toEqual([])
  })

  it('says that it was not run where the registry cannot be reached', async () => {
    const { code, output, commands, leftovers } = await runTestImage([NO_IMAGE, unreachable(), ...well])
    expect(code).toBe(0)
    expect(output).toMatch(/^NOT RUN: .* sandbox: .*no such host\.\nNOT RUN: .* production: .*no such host\.\n$/)
    expect(commands.filter((command) => / (?:build|up) /.test(command))).toEqual([])
    expect(leftovers).toEqual([])
  })

  it(
    'runs the set whose images are here though those of the other cannot be fetched',
    async () => {
      const missing: Rule = { on: '^image inspect postgres:', fails: true }
      const { code, output } = await runTestImage([missing, unreachable('postgres:'), ...well])
      expect([code, output]).toEqual([
        0,
        expect.stringMatching(
          /^docker-compose\.yml, sandbox: built .*\nNOT RUN: .* production: the registry of postgres/,
        ),
      ])
    },
    WHOLE_RUN_MS,
  )

  it.each<[string, readonly Rule[], RegExp]>([
    [
      'the engine is there and not for this user',
      [{ on: '^info$', says: 'permission denied while trying to connect to the Docker daemon socket', fails: true }],
      /docker is here and cannot be used: permission denied/,
    ],
    ['it has no Compose', [{ on: '^compose ', fails: true }], /no Docker Compose 2/],
    ['its Compose cannot wait', [{ on: '^compose version', says: '1.29.2' }], /no Docker Compose 2/],
    [
      'the registry does not know an image',
      [NO_IMAGE, { on: '^pull ', says: 'Error response from daemon: manifest for node:0 not found', fails: true }],
      /pull node:\S+ failed:\n.*not found/,
    ],
    [
      'the registry refuses',
      [NO_IMAGE, { on: '^pull ', says: 'Error response from daemon: toomanyrequests: You have reached', fails: true }],
      /toomanyrequests/,
    ],
  ])('fails where %s', async (_what, rules, message) => {
    const { code, output, errors, leftovers } = await runTestImage([...rules, ...well])
    expect([code, output, errors]).toEqual([1, '', expect.stringMatching(message)])
    expect(leftovers).toEqual([])
  })
})
