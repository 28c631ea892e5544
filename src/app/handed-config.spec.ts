import { deserialize, serialize } from 'node:v8'
import { describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../config/config-store.js'
import { handedOver } from '../config/handed-over.js'
import { parseConfig } from '../config/load-config.js'
import type { GatewayConfig } from '../config/settings.js'
import { HandedConfig } from './handed-config.js'
import type { ReloadVerdict } from './worker-messages.js'

const polling = (everyMs: number) => parseConfig(`{tasks: {pollIntervalMs: ${everyMs}}}`, {})
const accepted = (everyMs: number, needsRestart: readonly string[] = []): ReloadVerdict =>
  // As it comes from another process.
  deserialize(serialize({ config: polling(everyMs), needsRestart })) as ReloadVerdict
const REFUSED: ReloadVerdict = { faults: ['auth: must be a map'] }

function worker() {
  const first = handedOver(deserialize(serialize(polling(1))) as GatewayConfig)
  let asked = 0
  const handed = new HandedConfig({ config: first }, () => {
    asked++
  })
  const store = new ConfigStore(first, handed.readAgain)
  return { handed, store, asked: () => asked, everyMs: () => store.current.tasks.pollIntervalMs }
}

describe('the configuration that the primary hands over', () => {
  it('answers who asked for it, with what needs a restart, and cannot be changed', async () => {
    const { handed, store, asked, everyMs } = worker()
    const reload = store.reload()
    await Promise.resolve()
    expect(asked()).toBe(1)
    handed.answer(accepted(2, ['redis']))
    expect(await reload).toEqual({ applied: true, needsRestart: ['redis'], listenerErrors: [] })
    expect([everyMs(), Object.isFrozen(store.current.tasks)]).toEqual([2, true])
  })

  it('is refused in the words of the primary, and the old one stays', async () => {
    const { handed, store, everyMs } = worker()
    const reload = store.reload()
    await Promise.resolve()
    handed.answer(REFUSED)
    expect(await reload).toEqual({ applied: false, faults: ['auth: must be a map'] })
    expect(await store.reload(handed.hear(REFUSED))).toEqual({ applied: false, faults: ['auth: must be a map'] })
    expect(everyMs()).toBe(1)
  })

  it('is never an older one, although it came while somebody here waited for the newer one', async () => {
    const { handed, store, everyMs } = worker()
    const asked = store.reload()
    await Promise.resolve()
    const heard = store.reload(handed.hear(accepted(2)))
    handed.answer(accepted(3))
    await Promise.all([asked, heard])
    expect(everyMs()).toBe(3)
  })

  it('is taken over although what somebody here had asked for is refused', async () => {
    const { handed, store, everyMs } = worker()
    const asked = store.reload()
    await Promise.resolve()
    const heard = store.reload(handed.hear(accepted(2)))
    handed.answer(REFUSED)
    await Promise.all([asked, heard])
    expect(everyMs()).toBe(2)
  })

  it('is what was heard last where nobody asked', async () => {
    const { handed, store, everyMs } = worker()
    await Promise.all([2, 3, 4].map((ms) => store.reload(handed.hear(accepted(ms)))))
    expect(everyMs()).toBe(4)
  })
})
