import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { LAST_WORK_MS } from '../../src/app/shutdown.js'
import { ENVIRONMENT_OVERRIDES } from '../../src/config/environment.js'
import { parseConfig } from '../../src/config/load-config.js'
import { memoryBesideDocuments } from '../../src/overload/memory-load.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

interface Service {
  readonly image: string
  readonly build?: string
  readonly profiles: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly secrets?: readonly string[]
  readonly volumes?: readonly string[]
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly stop_grace_period?: string
  readonly healthcheck?: object
  readonly ports?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly deploy?: { readonly resources: { readonly limits: { readonly cpus: string; readonly memory: string } } }
}

interface Scrapes {
  readonly scrape_configs: readonly {
    readonly job_name: string
    readonly static_configs: readonly { readonly targets: readonly string[] }[]
  }[]
}

/** Of `45s`; not a number of anything else. */
const millisecondsOf = (time = ''): number => Number(/^(\d+)s$/.exec(time)?.[1] ?? Number.NaN) * 1000

/** Of `3G`; not a number of anything else. */
const gibibytesOf = (size = ''): number => Number(/^(\d+)G$/.exec(size)?.[1] ?? Number.NaN)

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly volumes: Readonly<Record<string, object>>
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as Compose
const services = Object.entries(compose.services)
const inProfile = (profile: string): string[] =>
  services.filter(([, { profiles }]) => profiles.includes(profile)).map(([name]) => name)
const OWN_IMAGE = 'multi-model-gateway:local'
const gateways = services.filter(([, { image }]) => image === OWN_IMAGE)

describe('docker-compose.yml', () => {
  it('has nothing but a gateway in the profile sandbox, and the whole set in production', () => {
    expect(inProfile('sandbox')).toEqual(['sandbox'])
    expect(inProfile('production').sort()).toEqual(
      ['balancer', 'gateway-1', 'gateway-2', 'postgres', 'prometheus', 'redis'].sort(),
    )
    // A service without a profile would start with every other one.
    expect(services.filter(([, { profiles }]) => profiles.length !== 1)).toEqual([])
  })

  it.each(services)('gives %s no right it does not need', (_name, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      deploy: { resources: { limits: { cpus: expect.anything() as unknown, memory: expect.anything() as unknown } } },
    })
  })

  it.each(services)('runs %s from a version that is named', (_name, { image }) => {
    if (image !== OWN_IMAGE) expect(image).toMatch(/:v?\d+\.\d+(?:\.\d+)?(?:-[a-z]+)?$/)
    expect(gateways).toHaveLength(3)
  })

  it('builds its image once in each set: two services cannot export one at the same time', () => {
    for (const profile of ['sandbox', 'production'])
      expect(
        gateways.filter(([, { build, profiles }]) => build !== undefined && profiles.includes(profile)),
      ).toHaveLength(1)
    expect(services.filter(([, { build, image }]) => build !== undefined && image !== OWN_IMAGE)).toEqual([])
  })

  it.each(services)('knows how %s is', (_name, { healthcheck, image }) => {
    // The gateways' own is in their image.
    expect(healthcheck !== undefined).toBe(image !== OWN_IMAGE)
    if (image === OWN_IMAGE) expect(read('Dockerfile')).toMatch(/^HEALTHCHECK .*\n.*\/health\/ready/m)
  })

  it('begins nothing before what it needs is healthy', () => {
    const needs = services.flatMap(([, { depends_on = {} }]) => Object.entries(depends_on))
    expect(needs.length).toBeGreaterThanOrEqual(6)
    for (const [name, { condition }] of needs) {
      expect(Object.keys(compose.services)).toContain(name)
      expect(condition).toBe('service_healthy')
    }
  })

  it('mounts files that exist, or that the operator is told to make', () => {
    const mounted = services.flatMap(([, { volumes = [] }]) => volumes.map((volume) => volume.split(':')[0] ?? ''))
    const [files, named] = [
      mounted.filter((path) => path.startsWith('./')),
      mounted.filter((path) => !path.startsWith('./')),
    ]
    expect(files.filter((path) => path !== './gateway.yaml' && !existsSync(join(ROOT, path)))).toEqual([])
    expect(named.filter((name) => !(name in compose.volumes))).toEqual([])
  })

  it('hands secrets over by file alone, and each that is named', () => {
    for (const [, { environment = {}, secrets = [] }] of services) {
      expect(secrets.filter((name) => compose.secrets[name]?.file !== `./secrets/${name}`)).toEqual([])
      const files = Object.entries(environment).filter(([name]) => name.endsWith('_FILE'))
      expect(
        files.map(([, path]) => path.replace('/run/secrets/', '')).filter((name) => !secrets.includes(name)),
      ).toEqual([])
      const open = Object.keys(environment).filter((name) => /KEY|SECRET|PASSWORD|_URL|CREDENTIALS/.test(name))
      expect(open.filter((name) => !name.endsWith('_FILE'))).toEqual([])
    }
  })

  it('sets no variable that .env.example does not name', () => {
    const known = [...read('.env.example').matchAll(/^#?([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name)
    const set = gateways.flatMap(([, { environment = {} }]) => Object.keys(environment))
    expect(set.length).toBeGreaterThan(0)
    expect(set.filter((name) => !known.includes(name.replace(/_FILE$/, '')))).toEqual([])
    expect(ENVIRONMENT_OVERRIDES.map(({ variable }) => variable)).toEqual(expect.arrayContaining(['DRAIN_DELAY_MS']))
  })

  it('gives gateways and the balancer more time to stop than delay, default grace and the last work take together', () => {
    const { drainDelayMs, shutdownGraceMs } = parseConfig('{}', {}).timeouts
    const endsAfterMs = gateways.map(
      ([, { environment = {} }]) =>
        Number(environment['DRAIN_DELAY_MS'] ?? drainDelayMs) + shutdownGraceMs + LAST_WORK_MS,
    )
    expect(endsAfterMs).toHaveLength(3)
    for (const [index, [name, { stop_grace_period: time }]] of gateways.entries()) {
      expect([name, millisecondsOf(time)]).toEqual([name, expect.any(Number)])
      expect(millisecondsOf(time)).toBeGreaterThan(endsAfterMs[index] ?? Number.NaN)
    }
    // Streams that run through the balancer end with the gateways' grace at the latest.
    const hardStop = /^ {2}hard-stop-after (\d+s)$/m.exec(read('deploy/haproxy/haproxy.cfg'))?.[1]
    expect(millisecondsOf(hardStop)).toBeGreaterThan(5_000 + shutdownGraceMs)
    expect(millisecondsOf(compose.services['balancer']?.stop_grace_period)).toBeGreaterThan(millisecondsOf(hardStop))
  })

  it('gives gateways memory for all their documents beside what they use themselves before they refuse', () => {
    const { admission, documents } = parseConfig('{}', {})
    const documentsBytes = documents.processes * documents.memoryBytes
    for (const [name, { deploy }] of gateways) {
      const containerBytes = gibibytesOf(deploy?.resources.limits.memory) * 2 ** 30
      const refusesFrom = admission.memoryHighShare * memoryBesideDocuments(containerBytes, documentsBytes)
      expect([name, refusesFrom + documentsBytes < containerBytes]).toEqual([name, true])
    }
  })

  it('keeps for each gateway alone what it could not store', () => {
    const data = gateways.map(([, { volumes = [] }]) => volumes.find((volume) => volume.endsWith(':/app/data')))
    expect(data.filter((volume) => volume === undefined)).toEqual([])
    expect(new Set(data).size).toBe(gateways.length)
  })

  it('is watched by a Prometheus that knows every replica by name', () => {
    const { scrape_configs: jobs } = parse(read('deploy/prometheus/prometheus.yml')) as Scrapes
    const replicas = inProfile('production').filter((name) => name.startsWith('gateway-'))
    const targets = jobs.find(({ job_name: job }) => job === 'gateway')?.static_configs.flatMap((each) => each.targets)
    expect(targets).toEqual(replicas.map((name) => `${name}:9090`))
  })

  it('publishes the balancer alone to the world, and what watches to this machine', () => {
    const open = services.flatMap(([name, { ports = [] }]) => ports.map((port) => `${name} ${port}`))
    expect(open.filter((port) => !port.includes(' 127.0.0.1:')).sort()).toEqual([
      'balancer 8080:8080',
      'sandbox 8080:8080',
    ])
  })
})

describe('the image', () => {
  it('starts Node with the flags of npm start', () => {
    const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: { readonly start: string } }
    const command = JSON.parse(/^CMD (\[.*\])$/m.exec(read('Dockerfile'))?.[1] ?? '[]') as readonly string[]
    expect(command.join(' ')).toBe(scripts.start)
    expect(command.filter((part) => part.startsWith('--'))).toContain('--max-semi-space-size=64')
  })

  it('is built from named versions, runs as nobody special, and copies files that exist', () => {
    const dockerfile = read('Dockerfile')
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+-bookworm-slim$/m)
    expect(dockerfile).toMatch(/^USER node$/m)
    const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) =>
      names.split(' '),
    )
    expect(sources.length).toBeGreaterThan(5)
    expect(sources.filter((name) => !existsSync(join(ROOT, name)))).toEqual([])
    const passed = read('.dockerignore')
    expect(sources.filter((name) => !passed.includes(`!${name}\n`))).toEqual([])
  })
})
