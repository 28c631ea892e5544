import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { parseConfig } from '../../src/config/load-config.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

const operations = read('docs/operations.md')
const metrics = read('docs/metrics.md')

/** From its heading to the next one of the same rank. */
function sectionOf(page: string, title: string): string {
  const [, text = ''] = page.split(`\n## ${title}\n`)
  return text.split('\n## ')[0] ?? ''
}

const codesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

/** Every metric that docs/metrics.md lists; another spec holds that list against the registry. */
const knownMetrics = new Set([...metrics.matchAll(/^\| `((?:gateway|process)_[a-z_]+)`/gm)].map(([, name]) => name))

const metricsIn = (text: string): string[] =>
  codesIn(text).flatMap((code) => [...code.matchAll(/\b(?:gateway|process)_[a-z_]+\b/g)].map(([name]) => name))

describe('docs/operations.md, Tuning', () => {
  const tuning = sectionOf(operations, 'Tuning')
  const rows = [...tuning.matchAll(/^\|(.+)\|$/gm)].map(([, row = '']) => row.split('|').map((cell) => cell.trim()))
  const advice = rows.slice(2)

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
    expect(read('src/gateway.ts')).toContain('WAITING_CONNECTIONS = 4096')
    expect(tuning).toContain('4096 places')
  })
})

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[]
}

describe('docs/metrics.md, Runbook', () => {
  const runbook = sectionOf(metrics, 'Runbook')
  const entries = runbook.split('\n### ').slice(1)
  const alerts = (parse(read('deploy/prometheus/alerts.yml')) as Rules).groups.flatMap(({ rules }) =>
    rules.map(({ alert }) => alert),
  )

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
