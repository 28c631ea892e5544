import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'

import { startP1Gateway } from '../support/p1-gateway.js'
import { unusedPort } from '../support/raw-upstream.js'
import { chat, SPAN, spanCounts, TRACE, TracingLab } from '../support/tracing-lab.js'

const lab = new TracingLab()
const { tracedGateway } = lab

beforeEach(() => lab.start())
afterEach(() => lab.close())

describe('Without a collector', () => {
  it('nothing is traced, and no upstream is told of a trace', async () => {
    const p1 = await startP1Gateway()
    lab.closers.push(() => p1.close())
    await chat(p1.gateway, 'hello', { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1' })
    expect(p1.simulator.lastRequest?.headers).not.toHaveProperty('traceparent')
    expect(p1.simulator.lastRequest?.headers).not.toHaveProperty('tracestate')
    expect(await spanCounts(p1.gateway)).toEqual({ sent: 0, failed: 0, dropped: 0 })
  })
})

describe('A collector that does not do its work', () => {
  it('is seen in the metrics when it refuses, and nowhere else', async () => {
    const { gateway } = await tracedGateway()
    lab.collector.mood = 'refuses'
    const refused = lab.collector.nextRequest()
    expect((await chat(gateway, 'hello')).status).toBe(200)
    await refused
    for (;;) {
      const { failed } = await spanCounts(gateway)
      if (failed === 2) break
    }
    expect(gateway.logText()).not.toMatch(/"level":(40|50)/)
  })

  it('does not keep a gateway from ending when it hangs', async () => {
    const p1 = await startP1Gateway({ sections: { observability: { otlpUrl: lab.collector.url } } })
    lab.collector.mood = 'hangs'
    const held = lab.collector.nextRequest()
    expect((await chat(p1.gateway, 'hello')).status).toBe(200)
    await held
    await p1.close()
    expect(lab.collector.spans).toEqual([])
  })

  it('does not keep callers waiting when nobody listens there', async () => {
    const otlpUrl = `http://127.0.0.1:${String(await unusedPort())}`
    const p1 = await startP1Gateway({ sections: { observability: { otlpUrl } } })
    for (let calls = 0; calls < 3; calls++) expect((await chat(p1.gateway, 'hello')).status).toBe(200)
    await p1.close()
  })
})
