import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDER = 'test/alerts'
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

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

interface RuleFile {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

interface Prometheus {
  readonly global: { readonly evaluation_interval: string }
}

const rules = (parse(read('deploy/prometheus/alerts.yml')) as RuleFile).groups.flatMap(({ rules: ofGroup }) => ofGroup)
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

describe('The tests of the alerts', () => {
  it('see every rule begin to fire at its very time', () => {
    const missing = rules.filter(({ alert }) => !checksOf(alert).some(beginsSharply)).map(({ alert }) => alert)
    expect(missing).toEqual([])
    expect(rules.length).toBeGreaterThanOrEqual(16)
  })

  it('see every rule stay quiet where its own metrics come near to what it is about', () => {
    const missing = rules.filter(({ alert, expr }) => {
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
    const known = rules.map(({ alert }) => alert)
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
