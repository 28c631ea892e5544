import { describe, expect, it } from '@jest/globals'
import { ConfigError } from './config-fault.js'
import { parseConfig } from './load-config.js'

const read = (section: object) => parseConfig(JSON.stringify({ observability: section }), {}).observability

function faultsOf(section: object): string {
  try {
    read(section)
    return ''
  } catch (error) {
    return error instanceof ConfigError ? error.message : String(error)
  }
}

describe('The section observability', () => {
  it('takes a collector, its headers, a share of traces and an address for the metrics', () => {
    const section = {
      metricsHost: '127.0.0.1',
      otlpUrl: 'https://collector.example.com/otlp',
      otlpHeaders: { 'x-api-key': 'secret value', Authorization: 'Basic abc=' },
      traceSampleRatio: 0.25,
    }
    expect(read(section)).toEqual(section)
  })

  it.each([0, 1, 0.001, '0.5'])('takes %s for a share', (traceSampleRatio) => {
    expect(read({ traceSampleRatio }).traceSampleRatio).toBe(Number(traceSampleRatio))
  })

  it.each([-0.1, 1.1, 'half', '1e-3', true, [1]])('refuses %p for a share', (traceSampleRatio) => {
    expect(faultsOf({ traceSampleRatio })).toMatch('observability.traceSampleRatio: must be a number from 0 to 1')
  })

  it.each([
    ['an address that is none', { otlpUrl: 'collector:4318' }, 'observability.otlpUrl'],
    ['an address with a user', { otlpUrl: 'http://u:canary@collector' }, 'observability.otlpUrl'],
    ['an address with a query', { otlpUrl: 'http://collector?canary' }, 'observability.otlpUrl'],
    ['a header with a space in its name', { otlpHeaders: { 'x canary': 'v' } }, 'observability.otlpHeaders'],
    ['a header with a line break', { otlpHeaders: { x: 'a\r\ncanary: b' } }, 'observability.otlpHeaders.x'],
    ['an empty header', { otlpHeaders: { x: '' } }, 'observability.otlpHeaders.x'],
    ['a header that is a number', { otlpHeaders: { x: 1 } }, 'observability.otlpHeaders.x'],
    ['a list of headers', { otlpHeaders: ['canary'] }, 'observability.otlpHeaders'],
    ['a host with a port', { metricsHost: 'host:9090' }, 'observability.metricsHost'],
    ['a key it does not know', { otlpURL: 'http://collector' }, 'observability: unknown key "otlpURL"'],
  ])('refuses %s, by name and never by value', (_what, section, fault) => {
    const text = faultsOf(section)
    expect(text).toContain(fault)
    expect(text).not.toContain('canary')
  })

  it('takes the collector from the environment', () => {
    const { observability, server } = parseConfig('{}', {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
      METRICS_PORT: '9100',
    })
    expect([observability.otlpUrl, server.metricsPort]).toEqual(['http://collector:4318', 9100])
  })
})
