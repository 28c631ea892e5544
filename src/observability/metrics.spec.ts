import { describe, expect, it, jest } from '@jest/globals'
import { mergedMetricsText, Metrics } from './metrics.js'
import { byLabel, registerCounter, registerGauge, single } from './readings.js'

const metric = (name: string, labelNames: readonly string[] = []) => ({ name, help: `${name}.`, labelNames })
const valuesIn = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

describe('The metrics of a process', () => {
  it('are read when somebody asks, and what is no longer read is no longer shown', async () => {
    const metrics = new Metrics()
    let channels: Record<string, number> = { one: 1, two: 2 }
    registerCounter(metrics, metric('gateway_a_total', ['channel']), () => byLabel('channel', channels))
    expect(valuesIn(await metrics.collectText())).toEqual([
      'gateway_a_total{channel="one"} 1',
      'gateway_a_total{channel="two"} 2',
    ])
    channels = { two: 5 }
    expect(valuesIn(await metrics.collectText())).toEqual(['gateway_a_total{channel="two"} 5'])
  })

  it('escape what labels may hold', async () => {
    const metrics = new Metrics()
    registerGauge(metrics, metric('gateway_a', ['channel']), () => byLabel('channel', { 'a"b\\c\nd': 1 }))
    expect(valuesIn(await metrics.collectText())).toEqual(['gateway_a{channel="a\\"b\\\\c\\nd"} 1'])
  })

  it('are told without the one that fails, which is counted', async () => {
    const metrics = new Metrics()
    registerGauge(metrics, metric('gateway_bad'), () => {
      throw new Error('broken')
    })
    registerGauge(metrics, metric('gateway_good'), () => single(1))
    expect(valuesIn(await metrics.collectText())).toEqual(['gateway_good 1'])
    expect(metrics.collectFailures).toBe(1)
    expect(await metrics.collectSnapshot()).toHaveLength(1)
    expect(metrics.collectFailures).toBe(2)
  })

  it('are told without the one that does not answer, after two seconds', async () => {
    jest.useFakeTimers()
    try {
      const metrics = new Metrics()
      registerGauge(metrics, metric('gateway_hanging'), () => new Promise<never>(() => undefined))
      registerGauge(metrics, metric('gateway_good'), () => single(1))
      const text = metrics.collectText()
      await jest.advanceTimersByTimeAsync(2_000)
      expect(valuesIn(await text)).toEqual(['gateway_good 1'])
      expect(metrics.collectFailures).toBe(1)
    } finally {
      jest.useRealTimers()
    }
  })

  it('are collected once for those who ask at the same time', async () => {
    const metrics = new Metrics()
    let reads = 0
    registerGauge(metrics, metric('gateway_a'), () => single(++reads))
    const [one, other] = await Promise.all([metrics.collectText(), metrics.collectText()])
    expect([one === other, reads]).toEqual([true, 1])
    await metrics.collectText()
    expect(reads).toBe(2)
  })

  it('are those of one gateway when several processes are told together: added up, or as each has it', async () => {
    const snapshots = await Promise.all(
      [1, 3].map((value) => {
        const metrics = new Metrics()
        registerCounter(metrics, metric('gateway_a_total', ['route']), () => byLabel('route', { '/x': value }))
        registerGauge(metrics, { ...metric('gateway_b'), aggregator: 'max' }, () => single(value))
        registerGauge(metrics, { ...metric('gateway_c'), aggregator: 'min' }, () => single(value))
        return metrics.collectSnapshot()
      }),
    )
    const text = await mergedMetricsText(JSON.parse(JSON.stringify(snapshots)) as object[][])
    expect(valuesIn(text)).toEqual(['gateway_a_total{route="/x"} 4', 'gateway_b 3', 'gateway_c 1'])
  })
})
