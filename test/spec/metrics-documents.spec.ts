import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { Metrics } from '../../src/observability/metrics.js'
import { type P1Gateway, startP1Gateway } from '../support/p1-gateway.js'
import { parseScrape } from '../support/prometheus-text.js'

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

interface KnownMetric {
  readonly type: string
  readonly labels: readonly string[]
}

let lab: P1Gateway
/** What the registry of a started gateway really holds. */
const known = new Map<string, KnownMetric>()

beforeAll(async () => {
  lab = await startP1Gateway()
  const metrics = lab.gateway.application.get(Metrics)
  for (const { name, type } of parseScrape(await metrics.collectText()).values()) {
    const labels = Reflect.get(metrics.registry.getSingleMetric(name) ?? {}, 'labelNames') as readonly string[]
    known.set(name, { type, labels: [...labels].sort() })
  }
})

afterAll(() => lab.close())

const cellsIn = (text: string): string[][] =>
  [...text.matchAll(/^\|(.+)\|$/gm)].map(([, row = '']) => row.split('|').map((cell) => cell.trim()))

const codesIn = (cell: string | undefined): string[] =>
  [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

describe('docs/metrics.md', () => {
  it('lists every metric with its type and its labels, and no other', () => {
    const rows = cellsIn(read('docs/metrics.md')).filter(([name = '']) => /^`(?:gateway|process)_[a-z_]+`$/.test(name))
    const listed = rows.map(([name, type, labels]) => [codesIn(name)[0], { type, labels: codesIn(labels).sort() }])
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

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string }
}

interface Provisioning {
  readonly providers: readonly [{ readonly options: { readonly path: string } }]
}

interface Compose {
  readonly services: { readonly grafana: { readonly volumes: readonly string[] } }
}

const dashboard = JSON.parse(read('deploy/grafana/gateway.json')) as Dashboard
const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
const rules = (parse(read('deploy/prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  ({ rules: ofGroup }) => ofGroup,
)

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
    expect(rules.flatMap(({ expr }) => faultsOf(expr))).toEqual([])
  })

  it('are documented, each with its severity, what it means and what to do first', () => {
    const rows = cellsIn(read('docs/metrics.md')).filter(([name = '']) => /^`Gateway\w+`$/.test(name))
    expect(rows.map(([name, severity]) => [codesIn(name)[0], severity])).toEqual(
      rules.map(({ alert, labels }) => [alert, labels.severity]),
    )
    expect(rows.filter(([, , means = '', first = '']) => means.length < 10 || first.length < 10)).toEqual([])
    expect(rules.filter(({ annotations }) => annotations.summary.length < 10)).toEqual([])
    expect(rules.length).toBeGreaterThanOrEqual(10)
  })

  it('use only labels of their queries in their sentences', () => {
    const faults = rules.flatMap(({ alert, expr, annotations: { summary } }) => {
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
