import { TRANSLATED } from '../scenarios.mjs'
import { median } from '../statistics.mjs'
import { slot, warmUp } from './cpu.mjs'

const ROLES = ['translated', 'relayed']

/** By title: two pairs of dialects share the relayed call of an upstream. */
const scenariosOf = (rows) =>
  Object.fromEntries(rows.flatMap((row) => ROLES.map((role) => [row[role].title, row[role]])))

/** The yardstick translates nothing: in a self-test both calls are relayed, and the second must add nothing. */
const rowsOf = ({ selfTest }) =>
  selfTest ? TRANSLATED.map((row) => ({ ...row, translated: row.relayed })) : TRANSLATED

async function pair(session, gateway, row, index, slotMs) {
  const order = index % 2 === 0 ? ROLES : ROLES.toReversed()
  const callUs = {}
  for (const role of order) {
    const { targetUs, completed } = await slot(session, gateway, row[role].title, slotMs, row[role])
    callUs[role] = targetUs / completed
  }
  return { ...callUs, addsUs: (callUs.translated - callUs.relayed) / (row.chunks ?? 1) }
}

/**
 * What a translated call costs more than the relayed one to the same upstream, in alternating slots of one process; `cpu` has what the
 * yardstick takes on this machine.
 */
export async function measureTranslated(session, { translated: { pairs: count, slotMs, ...warmUpPlan } }, cpu) {
  const gateway = await session.startGateway({ translate: true })
  try {
    const rows = rowsOf(session)
    await session.probe(gateway, scenariosOf(rows))
    const results = []
    for (const row of rows) {
      const settled = {}
      for (const role of ROLES) settled[role] = await warmUp(session, gateway, row[role].title, warmUpPlan, row[role])
      const pairs = []
      for (let index = 0; index < count; index++) pairs.push(await pair(session, gateway, row, index, slotMs))
      const over = (name) => pairs.map((one) => one[name])
      const addsUs = median(over('addsUs'))
      const ratio = addsUs / (row.chunks === undefined ? cpu.chat.yardstickUs : cpu.stream.yardstickUsPer)
      results.push({
        title: row.translated.title,
        per: row.chunks === undefined ? 'call' : 'chunk',
        translatedUs: median(over('translated')),
        relayedUs: median(over('relayed')),
        addsUs,
        lowestUs: Math.min(...over('addsUs')),
        highestUs: Math.max(...over('addsUs')),
        ratio,
        settled,
        target: row.target,
        met: ratio <= row.target,
        pairs,
      })
    }
    return results
  } finally {
    await gateway.service.stop()
  }
}
