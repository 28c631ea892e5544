import type { INestApplication } from '@nestjs/common'
import { MetricsServer } from '../../src/observability/metrics-server.js'
import { unusedPort } from './raw-upstream.js'

/** One line of a scrape. */
export interface Sample {
  /** As on the line: `_bucket`, `_sum` and `_count` included. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A family: what HELP and TYPE say of it, and its samples in order. */
export interface MetricFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly samples: readonly Sample[]
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const HELP = new RegExp(`^# HELP (${NAME}) (.+)$`)
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram)$`)
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`)
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|\+Inf|NaN)$/i

/**
 * Reads a scrape in Prometheus' text format 0.0.4, by the letter: throws at whatever a scraper might stumble over, such as
 * a family that appears twice or in two pieces, a series twice, a counter that is negative, buckets that do not add up.
 */
export function parseScrape(text: string): ReadonlyMap<string, MetricFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, MetricFamily & { readonly samples: Sample[] }>()
  let help: readonly [name: string, text: string] | undefined
  let current: (MetricFamily & { readonly samples: Sample[] }) | undefined
  for (const line of text.slice(0, -1).split('\n')) {
    if (line === '') continue
    const [, helpName, helpText] = HELP.exec(line) ?? []
    const [, typeName, type] = TYPE.exec(line) ?? []
    if (helpName !== undefined && helpText !== undefined) {
      help = [helpName, helpText]
    } else if (typeName !== undefined) {
      if (help?.[0] !== typeName) throw new Error(`${typeName} has no help before its type`)
      if (families.has(typeName)) throw new Error(`${typeName} is told twice`)
      current = { name: typeName, type: type as MetricFamily['type'], help: help[1], samples: [] }
      families.set(typeName, current)
    } else {
      current?.samples.push(sampleOf(line, current))
      if (current === undefined) throw new Error(`a sample without a family: ${line}`)
    }
  }
  for (const family of families.values()) check(family)
  return families
}

function sampleOf(line: string, family: MetricFamily): Sample {
  const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? []
  const own =
    family.type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => family.name + end) : [family.name]
  if (!own.includes(name) || !NUMBER.test(value)) throw new Error(`not a sample of ${family.name}: ${line}`)
  return { name, labels: labelsOf(labels, line), value: value === '+Inf' ? Infinity : Number(value) }
}

function labelsOf(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {}
  let rest = text
  while (rest !== '') {
    const [all = '', name = '', value = ''] = LABEL.exec(rest) ?? []
    if (all === '' || Object.hasOwn(labels, name)) throw new Error(`labels that cannot be read: ${line}`)
    labels[name] = value.replaceAll(/\\(.)/g, (_, sign: string) => (sign === 'n' ? '\n' : sign))
    rest = rest.slice(all.length)
    if (all.endsWith(',') && rest === '') throw new Error(`a comma too many: ${line}`)
  }
  return labels
}

/** What tells one series from another, whatever the order of its labels. */
export const seriesOf = ({ name, labels }: Sample): string => {
  const sorted = Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1))
  return `${name}${JSON.stringify(sorted)}`
}

function check({ name, type, samples }: MetricFamily): void {
  const series = samples.map(seriesOf)
  if (new Set(series).size !== series.length) throw new Error(`${name} has a series twice`)
  if (type === 'counter' && samples.some(({ value }) => !(value >= 0))) throw new Error(`${name} is negative`)
  if (type === 'histogram') checkBuckets(name, samples)
}

function checkBuckets(name: string, samples: readonly Sample[]): void {
  const groups = new Map<string, Sample[]>()
  for (const sample of samples) {
    const labels = Object.entries(sample.labels).filter(([label]) => label !== 'le')
    const key = seriesOf({ ...sample, name, labels: Object.fromEntries(labels) })
    groups.set(key, [...(groups.get(key) ?? []), sample])
  }
  for (const [key, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels: { le } }) => (le === '+Inf' ? Infinity : Number(le)))
    const count = group.find((sample) => sample.name === `${name}_count`)?.value
    const grows = (values: readonly number[], least: number): boolean =>
      values.every((value, index) => index === 0 || value - (values[index - 1] ?? 0) >= least)
    const isSound =
      group.length === buckets.length + 2 &&
      bounds.at(-1) === Infinity &&
      grows(bounds, Number.MIN_VALUE) &&
      grows(
        buckets.map(({ value }) => value),
        0,
      ) &&
      buckets.at(-1)?.value === count
    if (!isSound) throw new Error(`the buckets of ${key} are not sound`)
  }
}

/** The value of the one series with these labels, and no more of them; undefined when there is none. */
export function valueOf(
  families: ReadonlyMap<string, MetricFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = seriesOf({ name, labels, value: 0 })
  const family = families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ''))
  return family?.samples.find((sample) => seriesOf(sample) === wanted)?.value
}

export type Scrape = ReadonlyMap<string, MetricFamily>

/** A gateway that can be scraped over its own port, as Prometheus does. */
export interface Scraper {
  scrape(): Promise<Scrape>
  /** Scrapes until the condition holds: a call is counted when its response is over, not when its caller has it. */
  scrapeUntil(condition: (scrape: Scrape) => boolean): Promise<Scrape>
  /** The same until a series has this value. */
  untilValue(name: string, labels: Readonly<Record<string, string>>, value: number): Promise<Scrape>
  close(): Promise<void>
}

const PATIENCE_MS = 60_000

/** The section of a configuration that lets `startScraper` find a port. */
export const scrapable = async (): Promise<object> => ({ server: { metricsPort: await unusedPort() } })

export async function startScraper(application: INestApplication): Promise<Scraper> {
  const server = application.get(MetricsServer)
  await server.listen()
  const scrape = async (): Promise<Scrape> => {
    const answer = await fetch(`http://127.0.0.1:${String(server.port)}/metrics`)
    if (answer.status !== 200) throw new Error(`a scrape was answered with ${answer.status}`)
    return parseScrape(await answer.text())
  }
  const scrapeUntil: Scraper['scrapeUntil'] = async (condition) => {
    const deadlineAtMs = performance.now() + PATIENCE_MS
    for (;;) {
      const found = await scrape()
      if (condition(found)) return found
      if (performance.now() > deadlineAtMs) throw new Error(`no scrape met the condition ${String(condition)}`)
    }
  }
  return {
    scrape,
    scrapeUntil,
    untilValue: (name, labels, value) => scrapeUntil((found) => valueOf(found, name, labels) === value),
    close: () => server.close(),
  }
}
