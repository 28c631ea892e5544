import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { FAULT_NAMES } from '@multi-model-gateway/sandbox/server/faults.js'
import ts from 'typescript'
import { parse } from 'yaml'
import { numberedLines } from '../../src/app/cluster-child.js'
import { ENDPOINTS } from '../../src/app/capabilities.js'
import { PROVIDERS } from '../../src/app/providers.js'
import { LAST_WORK_MS } from '../../src/app/shutdown.js'
import { ENVIRONMENT_OVERRIDES, readEnvironment } from '../../src/config/environment.js'
import { settingsOf } from '../../src/config/settings-reference.js'
import { ERROR_KINDS } from '../../src/core/errors.js'
import { Metrics } from '../../src/observability/metrics.js'
import { memoryBesideDocuments } from '../../src/overload/load-monitor.js'
import { configSchema, parseConfig } from '../support/config.js'
import { NOT_SERVED } from '../../src/server/unknown-path.js'
import { eventually } from '../support/eventually.js'
import { FULL, FullGateway, KeptAliveClient } from '../support/failing-calls.js'
import { CHAT_PATH, chatText, sendRaw } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { parseScrape } from '../support/prometheus-text.js'
import { type P1Gateway, startP1Gateway } from '../support/provider-gateways.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** The first group of every match. */
const found = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, group]) => group ?? '')

/** What stands between code marks. */
const codesIn = (text: string): string[] => found(text, /`([^`]+)`/g)

/** The cells of every table row; an escaped `|` is part of its cell. */
const cellsIn = (text: string): string[][] =>
  found(text, /^\|(.+)\|$/gm).map((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim()))

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string }
}

/** The rules of all alerts. */
const RULES = (parse(read('deploy/prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
)

describe('documents', () => {
  const markdownIn = (folder: string, recursive: boolean): string[] =>
    readdirSync(join(ROOT, folder), { recursive, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => normalize(join(folder, name)))

  const DOCUMENTS = [...markdownIn('.', false), ...markdownIn('docs', true), ...markdownIn('bench', true)]

  /** Documents name sources by the end of their paths, as `tasks/poller.ts` or `poller.ts`. */
  const SOURCES = ['src', 'packages', 'test', 'bench'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => normalize(join(folder, name))),
  )

  /** The same without the code marks around them. */
  const tableRows = (text: string): string[][] =>
    cellsIn(text).map((cells) => cells.map((cell) => cell.replace(/^`([^`]*)`$/, '$1')))

  const withoutCode = (text: string): string => text.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '')

  /** Anchors as GitHub makes them: lower case, no punctuation, hyphens for spaces. */
  const anchorsOf = (text: string): string[] =>
    found(text.replaceAll(/^```[^]*?^```$/gm, ''), /^#+ (.+)$/gm).map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    )

  describe('the documents', () => {
    it('are found', () => {
      expect(DOCUMENTS).toEqual(expect.arrayContaining(['README.md', 'docs/operations.md', 'bench/README.md']))
      expect(DOCUMENTS.filter((name) => name.startsWith('docs/decisions/')).length).toBeGreaterThanOrEqual(6)
    })

    it.each(DOCUMENTS)('link to nothing that does not exist: %s', (document) => {
      const links = found(withoutCode(read(document)), /\]\((?!https?:)([^)\s]+)\)/g)
      const broken = links.filter((link) => {
        const [path = '', anchor] = link.split('#')
        const target = path === '' ? document : join(dirname(document), path)
        if (!existsSync(join(ROOT, target))) return true
        return anchor !== undefined && !anchorsOf(read(target)).includes(anchor)
      })
      expect(broken).toEqual([])
    })

    it.each(DOCUMENTS.filter((name) => name !== 'docs/spec.md'))('name no file that does not exist: %s', (document) => {
      const paths = found(read(document), /`((?:src|test|docs)\/[^`\s<>*]*)`/g)
      expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
    })

    it.each(DOCUMENTS.filter((name) => name !== 'docs/spec.md'))(
      'name no source that does not exist: %s',
      (document) => {
        const paths = found(read(document), /`([\w@./-]+\.ts)`/g)
        expect(paths.filter((path) => !SOURCES.some((name) => `/${name}`.endsWith(`/${path}`)))).toEqual([])
      },
    )

    it('name no npm script that does not exist', () => {
      const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
      const named = DOCUMENTS.flatMap((document) => [
        ...found(read(document), /\bnpm run ([a-z0-9:-]+)/g),
        ...found(read(document), /\bnpm (start|test)\b/g),
      ])
      expect(named).toEqual(expect.arrayContaining(['start', 'test', 'bench', 'documents']))
      expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([])
    })
  })

  describe('the README', () => {
    it('is short enough to be read', () => {
      expect(read('README.md').split('\n').length).toBeLessThanOrEqual(150)
    })
  })

  describe('docs/endpoints.md', () => {
    it('lists exactly the routes that openapi.json has', () => {
      const listed = tableRows(read('docs/endpoints.md')).filter(([, route = '']) => /^[A-Z]+ \//.test(route))
      const { paths } = JSON.parse(read('openapi.json')) as { paths: Record<string, object> }
      const routes = Object.entries(paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
      )
      expect(listed.map(([, route]) => route).sort()).toEqual(routes.sort())
    })
  })

  describe('a configuration that a document shows', () => {
    const anything = new Proxy<Record<string, string>>({}, { get: (_, name) => lettersOf(String(name)) })
    const blocks = ['README.md', 'docs/providers.md'].flatMap((document) =>
      found(read(document), /^```yaml\n([^]*?)^```$/gm).map((block, at) => [`${document} ${at + 1}`, block] as const),
    )

    it.each(blocks)('loads: %s', (_place, block) => {
      expect(parseConfig(block, anything).channels.length).toBeGreaterThanOrEqual(1)
    })

    it('is there for every provider', () => {
      const shown = blocks.flatMap(([, block]) => parseConfig(block, anything).channels.map(({ provider }) => provider))
      expect([...new Set(shown)].sort()).toEqual(PROVIDERS.map(({ name }) => name).sort())
    })
  })

  describe('docs/providers.md', () => {
    it('says of no path that it is not served which is, and lists those that a 404 explains', () => {
      const [, section = ''] = read('docs/providers.md').split('## What is not served')
      const refused = cellsIn(section).flatMap(([, cell = '']) => codesIn(cell))
      expect(refused.length).toBeGreaterThan(20)
      const beginnings = new Set(refused.map((path) => path.replace(/\/\*.*$/, '')))
      expect([...beginnings].sort()).toEqual(Object.keys(NOT_SERVED).sort())
      expect([...beginnings].filter((path) => ENDPOINTS.find(path).endpoints.length > 0)).toEqual([])
    })
  })

  describe('docs/clients.md', () => {
    const page = read('docs/clients.md')
    const rows = new Map(
      cellsIn(page).flatMap(([client = '', , , features = '']) =>
        found(client, /\]\(\.\.\/(examples\/clients\/[^)]+)\)/g).map((path) => [path, features] as const),
      ),
    )
    const examples = readdirSync(join(ROOT, 'examples/clients'), { recursive: true, encoding: 'utf8' })
      .filter((name) => /^(?:python\/[^/]+\.py|javascript\/[^/]+\.mjs|go\/[^/]+\/main\.go)$/.test(name))
      .map((name) => `examples/clients/${name}`)

    it('lists every example, with a snippet, and no other', () => {
      expect([...rows.keys()].sort()).toEqual(examples.toSorted())
      expect(found(page, /<!-- snippet: (\S+) -->/g).sort()).toEqual(examples.toSorted())
    })

    it.each(examples)('says what is tested of %s', (path) => {
      const folder = dirname(path)
      const sources = path.endsWith('.go')
        ? readdirSync(join(ROOT, folder)).map((name) => read(join(folder, name)))
        : [read(path)]
      const tested = new Set(found(sources.join('\n'), /(?:["']ok |check\(")([a-z-]+)["']/g))
      expect(new Set(rows.get(path)?.split(', '))).toEqual(tested)
      expect(tested.size).toBeGreaterThan(0)
    })
  })

  describe('docs/sandbox.md', () => {
    it('explains every word that makes the sandbox fail', () => {
      const wordsIn = (name: string): string[] => found(read(name), /`#([a-z0-9]+)`/g)
      const words = new Set<string>([
        ...FAULT_NAMES,
        ...wordsIn('packages/sandbox/src/vidgen/vidgen.simulator.ts'),
        ...wordsIn('packages/sandbox/src/server/generated-text.ts'),
      ])
      expect(words.size).toBeGreaterThan(FAULT_NAMES.length)
      expect(wordsIn('docs/sandbox.md').sort()).toEqual([...words].sort())
    })
  })

  /** A value for the placeholders of an example; none for the variables that win over the file. */
  const lettersOf = (name: string): string | undefined =>
    /_(?:KEY|TOKEN|ID|SECRET)$/.test(name) ? `value-of-${name}` : undefined

  describe('docs/operations.md', () => {
    const rows = tableRows(read('docs/operations.md'))

    it('lists every setting with its default, and no other', () => {
      const shown = { required: () => 'required', optional: () => '–', defaulted: JSON.stringify } as const
      const settings = new Map(
        settingsOf(configSchema).map(({ path, presence, fallback }) => [path, shown[presence](fallback)]),
      )
      const sections = Object.keys(parseConfig('{}', {}))
      const listed = new Map(
        rows
          // The name of a section alone is also a field of the log.
          .filter(
            ([key = '']) => sections.includes(key.split(/[.[]/, 1)[0] ?? '') && (/[.[]/.test(key) || settings.has(key)),
          )
          .map(([key = '', , fallback = '']) => [key, fallback]),
      )
      expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(settings))
      expect(settings.size).toBeGreaterThan(40)
    })

    it('says of every setting what values it takes and what it means', () => {
      expect(settingsOf(configSchema).filter(({ type, meaning }) => type === '' || meaning === '')).toEqual([])
    })

    it('lists every variable of the environment', () => {
      const asked = new Set<string>()
      readEnvironment(new Proxy({}, { get: (_, name) => void asked.add(String(name)) }))
      const text = read('docs/operations.md')
      // Each may also come from a file, which is said once for all.
      const named = [...asked].filter((name) => !name.endsWith('_FILE'))
      expect(named.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
      expect(asked.size).toBeGreaterThanOrEqual(8)
    })

    it('gives every kind of error what it becomes in each dialect, as the table in the code has it', () => {
      const expected = Object.entries(ERROR_KINDS).map(([kind, { audio, messages, task, shouldRetry }]) => [
        kind,
        ...[audio.status, audio.chatStatus, audio.type, audio.code ?? '–'].map(String),
        `${messages.status} ${messages.type}`,
        `${task.status}, ${task.code}`,
        shouldRetry === false ? 'false' : '–',
      ])
      expect(rows.filter(([kind = '', ...rest]) => Object.hasOwn(ERROR_KINDS, kind) && rest.length === 7)).toEqual(
        expected,
      )
    })
  })
})

describe('compose', () => {
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

    it('mounts files that exist, or that the documents ask the operator to make', () => {
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
      const targets = jobs
        .find(({ job_name: job }) => job === 'gateway')
        ?.static_configs.flatMap((each) => each.targets)
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

    it('is built from named versions, runs unprivileged, and copies files that exist', () => {
      const dockerfile = read('Dockerfile')
      expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+-bookworm-slim$/m)
      expect(dockerfile).toMatch(/^USER node$/m)
      const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) =>
        names.split(' '),
      )
      expect(sources.length).toBeGreaterThan(5)
      expect(sources.filter((name) => !existsSync(join(ROOT, name)))).toEqual([])
      const passed = read('.dockerignore')
      const folders = [...passed.matchAll(/^!(.+)$/gm)].map(([, name = '']) => name)
      const isPassed = (name: string): boolean =>
        folders.some((folder) => name === folder || name.startsWith(`${folder}/`))
      expect(sources.filter((name) => !isPassed(name))).toEqual([])
    })
  })
})

describe('operators pages', () => {
  const operations = read('docs/operations.md')
  const metrics = read('docs/metrics.md')

  /** From its heading to the next one of the same rank. */
  function sectionOf(page: string, title: string): string {
    const [, text = ''] = page.split(`\n## ${title}\n`)
    return text.split('\n## ')[0] ?? ''
  }

  /** Every metric that docs/metrics.md lists; another spec holds that list against the registry. */
  const knownMetrics = new Set([...metrics.matchAll(/^\| `((?:gateway|process)_[a-z_]+)`/gm)].map(([, name]) => name))

  const metricsIn = (text: string): string[] =>
    codesIn(text).flatMap((code) => [...code.matchAll(/\b(?:gateway|process)_[a-z_]+\b/g)].map(([name]) => name))

  describe('docs/operations.md, Tuning', () => {
    const tuning = sectionOf(operations, 'Tuning')
    const advice = cellsIn(tuning).slice(2)

    it('says for each sign what tells of it and what to do', () => {
      expect(advice.length).toBeGreaterThanOrEqual(12)
      expect(advice.filter((cells) => cells.length !== 5 || cells.some((cell) => cell.length === 0))).toEqual([])
      expect(advice.filter(([, tells = '']) => metricsIn(tells).length === 0)).toEqual([])
    })

    it('names the defaults that hold', () => {
      const config: unknown = parseConfig('{}', {})
      const valueAt = (path: string): string => {
        const value = path.split('.').reduce<unknown>((at, name) => Reflect.get(at as object, name), config)
        return String(value)
      }
      const named = advice.flatMap(([, , settings = '', defaults = '']) => {
        const values = codesIn(defaults)
        return codesIn(settings).map((path, index) => [path, values[index]])
      })
      expect(named.length).toBeGreaterThan(20)
      expect(named).toEqual(named.map(([path = '']) => [path, valueAt(path)]))
    })

    it('names metrics that exist', () => {
      expect(metricsIn(tuning).filter((name) => !knownMetrics.has(name))).toEqual([])
    })

    it('names the figures of the deployment as they stand there', () => {
      const balancer = read('deploy/haproxy/haproxy.cfg')
      for (const [name, value] of [
        ['fd-hard-limit', '40000'],
        ['tune.bufsize', '32768'],
      ]) {
        expect(balancer).toContain(`\n  ${name} ${value}\n`)
        expect(tuning).toContain(`\`${name}\``)
      }
      expect(tuning).toContain('`fd-hard-limit` (40000)')
      expect(tuning).toContain('`tune.bufsize` (32 KiB)')
      expect(read('package.json')).toContain('--max-semi-space-size=64 ')
      expect(tuning).toContain('`--max-semi-space-size` (64 MiB')
      expect(read('src/app/gateway.ts')).toContain('WAITING_CONNECTIONS = 4096')
      expect(tuning).toContain('4096 places')
    })
  })

  describe('docs/metrics.md, Runbook', () => {
    const runbook = sectionOf(metrics, 'Runbook')
    const entries = runbook.split('\n### ').slice(1)
    const alerts = RULES.map(({ alert }) => alert)

    it('has an entry for every alert, in their order, and no other', () => {
      expect(entries.map((entry) => entry.split('\n')[0])).toEqual(alerts)
    })

    it.each(alerts)('says of %s what it means, where to look, and what to do', (alert) => {
      const entry = entries.find((each) => each.startsWith(`${alert}\n`)) ?? ''
      const [, meaning = '', look = '', action = ''] =
        /^\w+\n\n([\s\S]+?)\n\n- \*\*Look:\*\* ([\s\S]+?)\n- \*\*Do:\*\* ([\s\S]+)$/.exec(entry) ?? []
      for (const part of [meaning, look, action]) expect(part.length).toBeGreaterThan(60)
      // Something to be asked for: a metric, a route, a line of the log or a command.
      expect(codesIn(look).length).toBeGreaterThan(0)
    })

    it('names metrics that exist', () => {
      expect(metricsIn(runbook).filter((name) => !knownMetrics.has(name))).toEqual([])
    })

    it('quotes lines of the log as docs/operations.md has them', () => {
      const quoted = codesIn(runbook).filter((code) => /^[a-z]+:? [a-z]+:? [a-z]+/.test(code) && !/[(){}|]/.test(code))
      const lines = quoted.filter((code) => !/^(?:docker|redis-cli) /.test(code))
      expect(lines.length).toBeGreaterThan(8)
      expect(lines.filter((line) => !operations.includes(`\`${line}\``))).toEqual([])
    })
  })
})

describe('metrics documents', () => {
  interface KnownMetric {
    readonly type: string
    readonly labels: readonly string[]
  }

  let lab: P1Gateway
  /** What the registry of a started gateway really holds. */
  const known = new Map<string, KnownMetric>()

  shareLab(async () => {
    lab = await startP1Gateway()
    const metrics = lab.gateway.application.get(Metrics)
    for (const { name, type } of parseScrape(await metrics.collectText()).values()) {
      const labels = Reflect.get(metrics.registry.getSingleMetric(name) ?? {}, 'labelNames') as readonly string[]
      known.set(name, { type, labels: [...labels].sort() })
    }
    return lab
  })

  describe('docs/metrics.md', () => {
    it('lists every metric with its type and its labels, and no other', () => {
      const rows = cellsIn(read('docs/metrics.md')).filter(([name = '']) =>
        /^`(?:gateway|process)_[a-z_]+`$/.test(name),
      )
      const listed = rows.map(([name = '', type, labels = '']) => [
        codesIn(name)[0],
        { type, labels: codesIn(labels).sort() },
      ])
      expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(known))
      expect([listed.length, known.size > 40]).toEqual([known.size, true])
    })

    it('says something of each', () => {
      const rows = cellsIn(read('docs/metrics.md')).filter(([name = '']) => name.startsWith('`gateway_'))
      expect(rows.filter(([, , , meaning = '']) => meaning.length < 5)).toEqual([])
    })
  })

  interface Query {
    readonly metric: string
    readonly labels: readonly string[]
  }

  /** What a query asks for: each metric, and the labels by which it is chosen. */
  const queriesIn = (expression: string): Query[] =>
    [...expression.matchAll(/\b((?:gateway|process)_[a-z_]+)\b(?:\{([^}]*)\})?/g)].map(
      ([, metric = '', labels = '']) => ({
        metric,
        labels: [...labels.matchAll(/([a-z_]+)(?:=~|=|!=|!~)"/g)].map(([, label = '']) => label),
      }),
    )

  /** By which a query groups. */
  const groupsIn = (expression: string): string[] =>
    [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) =>
      labels.split(',').map((label) => label.trim()),
    )

  /** A histogram is asked for by the names of its samples. */
  const familyOf = (metric: string): string => {
    const family = metric.replace(/_(?:bucket|sum|count)$/, '')
    return known.get(family)?.type === 'histogram' ? family : metric
  }

  /** Prometheus' own. */
  const SCRAPE_LABELS = ['job', 'instance']

  function faultsOf(expression: string): string[] {
    const queries = queriesIn(expression)
    const unknown = queries.filter(({ metric }) => !known.has(familyOf(metric))).map(({ metric }) => metric)
    const labels = queries.flatMap(({ metric, labels: asked }) => {
      const own = [...SCRAPE_LABELS, ...(known.get(familyOf(metric))?.labels ?? [])]
      return asked.filter((label) => !own.includes(label)).map((label) => `${metric}{${label}}`)
    })
    const all = [...SCRAPE_LABELS, 'le', ...queries.flatMap(({ metric }) => known.get(familyOf(metric))?.labels ?? [])]
    const groups = groupsIn(expression).filter((label) => !all.includes(label))
    return [...unknown, ...labels, ...groups]
  }

  interface Panel {
    readonly id: number
    readonly type: string
    readonly title: string
    readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
  }

  interface Dashboard {
    readonly title: string
    readonly uid: string
    readonly schemaVersion: number
    readonly panels: readonly Panel[]
  }

  interface Provisioning {
    readonly providers: readonly [{ readonly options: { readonly path: string } }]
  }

  interface Compose {
    readonly services: { readonly grafana: { readonly volumes: readonly string[] } }
  }

  const dashboard = JSON.parse(read('deploy/grafana/gateway.json')) as Dashboard
  const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

  describe('The dashboard', () => {
    it('asks for metrics and labels that exist', () => {
      expect(expressions.flatMap(faultsOf)).toEqual([])
      expect(expressions.length).toBeGreaterThan(40)
    })

    it('shows every metric', () => {
      const shown = new Set(expressions.flatMap(queriesIn).map(({ metric }) => familyOf(metric)))
      expect([...known.keys()].filter((name) => !shown.has(name))).toEqual([])
    })

    it('names in its legends only labels that its queries leave', () => {
      const faults = dashboard.panels.flatMap(({ title, targets = [] }) =>
        targets.flatMap(({ expr, legendFormat }) => {
          const left = expr.includes(' by (')
            ? groupsIn(expr)
            : ['instance', ...queriesIn(expr).flatMap(({ labels }) => labels)]
          return [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]
            .filter(([, label = '']) => !left.includes(label))
            .map(([legend]) => `${title}: ${legend}`)
        }),
      )
      expect(faults).toEqual([])
    })

    it('is laid out as Grafana wants it: every panel by itself, none over another', () => {
      const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
      )
      expect(new Set(cells).size).toBe(cells.length)
      expect(dashboard.panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([])
      expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
      expect(dashboard.panels.filter(({ type, targets = [] }) => type !== 'row' && targets.length === 0)).toEqual([])
    })
  })

  describe('The alerts', () => {
    it('ask for metrics and labels that exist', () => {
      expect(RULES.flatMap(({ expr }) => faultsOf(expr))).toEqual([])
    })

    it('are documented, each with its severity, what it means and what to do first', () => {
      const rows = cellsIn(read('docs/metrics.md')).filter(([name = '']) => /^`Gateway\w+`$/.test(name))
      expect(rows.map(([name = '', severity]) => [codesIn(name)[0], severity])).toEqual(
        RULES.map(({ alert, labels }) => [alert, labels.severity]),
      )
      expect(rows.filter(([, , means = '', first = '']) => means.length < 10 || first.length < 10)).toEqual([])
      expect(RULES.filter(({ annotations }) => annotations.summary.length < 10)).toEqual([])
      expect(RULES.length).toBeGreaterThanOrEqual(10)
    })

    it('use only labels of their queries in their sentences', () => {
      const faults = RULES.flatMap(({ alert, expr, annotations: { summary } }) => {
        const isGrouped = /\bsum\(|\bmax\(| by \(/.test(expr)
        const left = expr.includes(' by (') ? groupsIn(expr) : isGrouped ? [] : SCRAPE_LABELS
        return [...summary.matchAll(/\$labels\.(\w+)/g)]
          .filter(([, label = '']) => !left.includes(label))
          .map(([label]) => `${alert}: ${label}`)
      })
      expect(faults).toEqual([])
    })
  })

  describe('Grafana', () => {
    it('finds the Prometheus of the compose file, and the dashboard where it is mounted', () => {
      const provisioning = 'deploy/grafana/provisioning'
      expect(parse(read(`${provisioning}/datasources/prometheus.yml`))).toMatchObject({
        datasources: [{ type: 'prometheus', url: 'http://prometheus:9090', isDefault: true }],
      })
      const [provider] = (parse(read(`${provisioning}/dashboards/gateway.yml`)) as Provisioning).providers
      const { volumes } = (parse(read('docker-compose.yml'), { merge: true }) as Compose).services.grafana
      expect(volumes).toContain(`./deploy/grafana/gateway.json:${provider.options.path}/gateway.json:ro`)
      expect(volumes).toContain(`./${provisioning}:/etc/grafana/provisioning:ro`)
    })
  })

  describe('The scrape configuration', () => {
    it('finds the gateways of the compose file on the port of their metrics, and the alerts', () => {
      expect(parse(read('deploy/prometheus/prometheus.yml'))).toMatchObject({
        rule_files: ['alerts.yml'],
        scrape_configs: [
          { job_name: 'gateway', static_configs: [{ targets: ['gateway-1:9090', 'gateway-2:9090'] }] },
          { job_name: 'balancer', static_configs: [{ targets: ['balancer:8405'] }] },
        ],
      })
    })
  })
})

describe('The tests of the alerts', () => {
  const FOLDER = 'test/alerts'

  interface Check {
    readonly eval_time: string
    readonly alertname: string
    /** None: the alert is quiet at that time. */
    readonly exp_alerts?: readonly unknown[]
  }

  interface Scenario {
    readonly name: string
    readonly input_series: readonly { readonly series: string }[]
    readonly alert_rule_test: readonly Check[]
  }

  interface TestFile {
    readonly rule_files: readonly string[]
    readonly evaluation_interval: string
    readonly tests: readonly Scenario[]
  }

  interface Prometheus {
    readonly global: { readonly evaluation_interval: string }
  }

  const fileNames = readdirSync(join(ROOT, FOLDER))
  const files = fileNames.map((name) => parse(read(`${FOLDER}/${name}`)) as TestFile)
  const scenarios = files.flatMap(({ tests }) => tests)

  /** `1m15s` in seconds. */
  function secondsOf(duration: string): number {
    if (!/^(?:\d+h)?(?:\d+m)?(?:\d+s)?$/.test(duration)) throw new Error(`not a duration: ${duration}`)
    const part = (unit: string): number => Number(new RegExp(`(\\d+)${unit}`).exec(duration)?.[1] ?? 0)
    return part('h') * 3600 + part('m') * 60 + part('s')
  }

  const prometheus = parse(read('deploy/prometheus/prometheus.yml')) as Prometheus
  const intervalSeconds = secondsOf(prometheus.global.evaluation_interval)

  const fires = ({ exp_alerts: alerts = [] }: Check): boolean => alerts.length > 0

  /** For each scenario that looks at this alert, its looks. */
  const checksOf = (alert: string): Check[][] =>
    scenarios
      .map(({ alert_rule_test: checks }) => checks.filter(({ alertname }) => alertname === alert))
      .filter((checks) => checks.length > 0)

  /** Quiet at one evaluation and firing at the next: how long the rule waits can then be neither shorter nor longer. */
  const beginsSharply = (checks: readonly Check[]): boolean =>
    checks.some(
      (firing) =>
        fires(firing) &&
        checks.some(
          (quiet) => !fires(quiet) && secondsOf(quiet.eval_time) === secondsOf(firing.eval_time) - intervalSeconds,
        ),
    )

  const metricsIn = (text: string): string[] => [...text.matchAll(/\b(?:up\b|gateway_[a-z_]+)/g)].map(([name]) => name)

  it('see every rule begin to fire at its very time', () => {
    const missing = RULES.filter(({ alert }) => !checksOf(alert).some(beginsSharply)).map(({ alert }) => alert)
    expect(missing).toEqual([])
    expect(RULES.length).toBeGreaterThanOrEqual(16)
  })

  it('see every rule stay quiet where its own metrics come near to what it is about', () => {
    const missing = RULES.filter(({ alert, expr }) => {
      const quiet = scenarios.filter(({ alert_rule_test: checks, input_series: series }) => {
        const own = checks.filter(({ alertname }) => alertname === alert)
        const given = series.flatMap((each) => metricsIn(each.series))
        return own.length > 0 && !own.some(fires) && metricsIn(expr).every((metric) => given.includes(metric))
      })
      return quiet.length === 0
    })
    expect(missing.map(({ alert }) => alert)).toEqual([])
  })

  it('are about alerts that there are, in scenarios with names of their own', () => {
    const known = RULES.map(({ alert }) => alert)
    const checks = scenarios.flatMap(({ alert_rule_test: ofScenario }) => ofScenario)
    expect(checks.map(({ alertname }) => alertname).filter((alert) => !known.includes(alert))).toEqual([])
    expect(new Set(scenarios.map(({ name }) => name)).size).toBe(scenarios.length)
  })

  it('are all run before a release, on the rules of this repository, as often as Prometheus evaluates them', () => {
    expect(fileNames.filter((name) => !name.endsWith('.test.yml'))).toEqual([])
    expect(read('.ci/run')).toMatch(new RegExp(`^promtool test rules ${FOLDER}/\\*\\.test\\.yml$`, 'm'))
    for (const { rule_files: ruleFiles, evaluation_interval: interval } of files) {
      expect(ruleFiles).toEqual(['../../deploy/prometheus/alerts.yml'])
      expect(secondsOf(interval)).toBe(intervalSeconds)
    }
  })
})

describe('log fields', () => {
  type Line = Readonly<Record<string, unknown>>

  /** By field, what the page says of it. */
  type Fields = ReadonlyMap<string, string>

  /** The tables of fields in the section about the log: that of requests, and that of refusals. */
  const [ofRequests, ofRefusals] = [
    ...read('docs/operations.md').matchAll(/^\| Field .*\n\| -.*\n((?:\|.*\n)+)/gm),
  ].map<Fields>(
    ([, rows = '']) =>
      new Map(
        rows.split('\n').flatMap((row) => {
          const [, names = '', meaning = ''] = row.split(/ *(?<!\\)\| */)
          return codesIn(names).map((name) => [name, meaning] as const)
        }),
      ),
  )

  /** As a worker's line stands in the log that all of them share. */
  function asOfWorker(line: string): Line {
    let numbered = ''
    numberedLines(3, { write: (text) => (numbered = text) }).write(line)
    return JSON.parse(numbered) as Line
  }

  const linesOf = (log: string, message: string): Line[] =>
    log
      .split('\n')
      .filter((line) => line.includes(`"msg":"${message}"`))
      .map(asOfWorker)

  const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort()
  const fieldsIn = (lines: readonly Line[]): string[] => sorted(lines.flatMap((line) => Object.keys(line)))

  /** Of a field that holds an object or a list of them. */
  const namesWithin = (lines: readonly Line[], field: string): string[] =>
    sorted(lines.flatMap((line) => [line[field] ?? []].flat().flatMap((value) => Object.keys(value))))

  describe('docs/operations.md, the line of a request', () => {
    let lines: readonly Line[] = []

    beforeAll(async () => {
      const sections = { dialects: { translate: 'on' } }
      const { gateway, simulator, second, close } = await startP1Gateway({ withSecond: true, sections })
      const ask = (more: object = {}) => sendRaw(gateway.url, { path: CHAT_PATH, body: chatText('hello', more) })
      try {
        await ask()
        simulator.queueFault('500')
        await ask()
        // Of a used connection and of the new one on which it is sent once more.
        for (const channel of [simulator, second, simulator, second]) channel.queueFault('reset')
        await ask()
        await ask({ messages: [] })
        await sendRaw(gateway.url, { path: '/v1/messages', body: chatText('hello', { max_tokens: 9 }) })
        await eventually(() => linesOf(gateway.logText(), 'request').length === 5)
        lines = linesOf(gateway.logText(), 'request')
      } finally {
        await close()
      }
    })

    it('lists every field that a line has, and none that no line has', () => {
      expect(sorted(ofRequests?.keys() ?? [])).toEqual(fieldsIn(lines))
    })

    it.each(['tried', 'usage', 'failure'])('names what the field %s holds, and nothing else', (field) => {
      expect(sorted(codesIn(ofRequests?.get(field) ?? ''))).toEqual(namesWithin(lines, field))
    })

    // Whatever is logged so seldom that no request above has it.
    it('lists every field that the code can write', () => {
      const code = read('src/observability/access-log.ts')
      const written = code.matchAll(/\b(?:word|count|duration|record)\('(\w+)'|[{,]"(\w+)":/g)
      const names = [...written].map(([, named = '', spelled = named]) => spelled)
      const documented = [...(ofRequests?.keys() ?? []), ...codesIn(ofRequests?.get('usage') ?? '')]
      // The number of a worker is put in front of its lines elsewhere.
      expect(sorted([...names, 'worker'])).toEqual(sorted(documented))
    })
  })

  describe('docs/operations.md, the line about refused requests', () => {
    const EVERY_LINE = ['worker', 'level', 'time', 'msg']
    let lab: FullGateway
    let lines: readonly Line[] = []

    beforeAll(async () => {
      lab = await FullGateway.start(FULL)
      const { answered } = await lab.fill()
      const client = new KeptAliveClient(lab.url)
      expect((await client.ask()).status).toBe(503)
      const found = (): Line[] => linesOf(lab.gateway.logText(), 'requests refused: the process cannot keep up')
      await eventually(() => found().length > 0)
      lines = found()
      client.socket.destroy()
      lab.empty()
      await answered
    })
    afterAll(() => lab.close())

    it('lists every field that the line has, and no other', () => {
      expect(sorted([...EVERY_LINE, ...(ofRefusals?.keys() ?? [])])).toEqual(fieldsIn(lines))
    })

    it('names every reason that is counted, and no other', () => {
      expect(sorted(codesIn(ofRefusals?.get('sinceStart') ?? ''))).toEqual(namesWithin(lines, 'sinceStart'))
    })
  })
})

describe('docs/operations.md, Logs', () => {
  /** What an operator sees unless `logging.level` asks for more. */
  const LEVELS: readonly string[] = ['info', 'warn', 'error', 'fatal']

  interface LogLine {
    readonly level: string
    readonly text: string
    readonly file: string
  }

  interface Source {
    readonly file: string
    readonly text: string
  }

  const sources: readonly Source[] = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts'))
    .map((file) => ({ file, text: read(`src/${file}`) }))

  /** The texts that an expression may come to; of one with holes, what stands before the first. Undefined: no text itself. */
  function textsOf(node: ts.Expression): string[] | undefined {
    if (ts.isStringLiteralLike(node)) return [node.text]
    if (ts.isTemplateExpression(node)) return [node.head.text.trim()]
    if (!ts.isConditionalExpression(node)) return undefined
    const [first, second] = [textsOf(node.whenTrue), textsOf(node.whenFalse)]
    return first === undefined || second === undefined ? undefined : [...first, ...second]
  }

  function nodesOf({ file, text }: Source): ts.Node[] {
    const found: ts.Node[] = []
    const visit = (node: ts.Node): void => {
      found.push(node)
      ts.forEachChild(node, visit)
    }
    visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true))
    return found
  }

  /** What stands where a message does, in every call of a logger. */
  const messages = sources.flatMap((source) =>
    nodesOf(source).flatMap((node) => {
      if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return []
      const { name, expression: target } = node.expression
      const message = node.arguments.at(-1)
      if (!LEVELS.includes(name.text) || !/(?:\blogger|^log)$/.test(target.getText()) || message === undefined)
        return []
      return [{ file: source.file, level: name.text, message }]
    }),
  )

  /** Texts that stand elsewhere than in the call of the logger: literals given as a property, passed on or returned. */
  const given = (property: string) => (node: ts.Node) =>
    ts.isPropertyAssignment(node) && node.name.getText() === property ? textsOf(node.initializer) : undefined
  const returned = (node: ts.Node): string[] | undefined =>
    ts.isReturnStatement(node) && node.expression !== undefined ? textsOf(node.expression) : undefined
  const passed = (method: string) => (node: ts.Node) => {
    if (!ts.isCallExpression(node) || node.expression.getText() !== `this.${method}`) return undefined
    const text = node.arguments.at(-1)
    return text === undefined ? undefined : textsOf(text)
  }
  const none = (): undefined => undefined

  /** Messages that are held in variables, and where their texts are; every other one is a literal. */
  const HELD: Readonly<
    Record<string, { readonly in: RegExp; readonly text: (node: ts.Node) => string[] | undefined }>
  > = {
    'warn of failure in storage/retention.ts': { in: /\.pg\.ts$|^tasks\/poller\.ts$/, text: given('failure') },
    'warn of this.work.outage in tasks/due-work-loop.ts': {
      in: /^tasks\/callback-sender\.ts$|^responses\/background-watcher\.ts$/,
      text: given('outage'),
    },
    'info of note in serve.ts': { in: /^app\/cluster-primary\.ts$/, text: returned },
    'error of message in storage/reconnecting-database.ts': {
      in: /^storage\/reconnecting-database\.ts$/,
      text: passed('markDown'),
    },
    // Handed on from `reportReload`, whose own calls of a logger are among the messages.
    'info of message in admin/reload.controller.ts': { in: /^admin\/reload\.controller\.ts$/, text: none },
    'error of message in admin/reload.controller.ts': { in: /^admin\/reload\.controller\.ts$/, text: none },
    // The framework's own words.
    'warn of String(message) in observability/logger.ts': { in: /^observability\/logger\.ts$/, text: none },
    'error of String(message) in observability/logger.ts': { in: /^observability\/logger\.ts$/, text: none },
    // Each warning names the setting it is about: the page speaks of them together.
    'warn of warning in app/gateway.ts': { in: /^config\/config-store\.ts$/, text: none },
  }

  const placeOf = ({ file, level, message }: (typeof messages)[number]): string =>
    `${level} of ${message.getText()} in ${file}`

  function linesOf(each: (typeof messages)[number]): LogLine[] {
    const held = HELD[placeOf(each)]
    const places = sources.filter(({ file }) => held?.in.test(file))
    const texts = textsOf(each.message) ?? places.flatMap(nodesOf).flatMap((node) => held?.text(node) ?? [])
    return texts.map((text) => ({ level: each.level, text, file: each.file }))
  }

  const page = read('docs/operations.md')

  /** Rows of the table that lists lines: the texts of the first cell, each with the level of the second. */
  const listed = [...page.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) +\| (info|warn|error|fatal) +\| /gm)].flatMap(
    ([, cell = '', level = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => ({ level, text: text.replace(/ ?…$/, '') })),
  )

  it('lists every line that the gateway writes, with its level', () => {
    const written = messages.flatMap(linesOf)
    expect(written.length).toBeGreaterThan(35)
    const missing = written.filter(({ level, text }) => !listed.some((row) => row.level === level && row.text === text))
    expect(missing).toEqual([])
  })

  it('knows where the texts are that are not written out where they are logged', () => {
    const held = messages.filter(({ message }) => textsOf(message) === undefined)
    expect(held.map(placeOf).sort()).toEqual(Object.keys(HELD).sort())
    const texts = new Map(held.map((each) => [placeOf(each), linesOf(each).length]))
    expect([...texts].filter(([place, count]) => count === 0 && HELD[place]?.text !== none)).toEqual([])
  })

  it('lists none that the gateway does not write', () => {
    const all = sources.map(({ text }) => text).join('\n')
    expect(listed.filter(({ text }) => !all.includes(text))).toEqual([])
    expect(new Set(listed.map(({ text, level }) => `${level} ${text}`)).size).toBe(listed.length)
  })
})

describe('The balancer', () => {
  it('uses replicas whose store is lost, for whatever reason, when no other is left', () => {
    const lost = /type LostStore = ([^\n]+)/.exec(read('src/observability/readiness.ts'))?.[1] ?? ''
    const words = [...lost.matchAll(/'(\w+)'/g)].map(([, word]) => word)
    const file = read('deploy/haproxy/haproxy.cfg')
    const expected = /backend gateways_without_store[^]*?http-check expect rstring "([^"]+)"/.exec(file)?.[1]
    expect(words.length).toBeGreaterThan(1)
    expect(expected?.split('|').sort()).toEqual(['ready', ...words].sort())
  })
})
