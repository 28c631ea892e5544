import { Big } from 'big.js'
import { UNITS } from '../../src/core/unit-names.js'
import type { UsageRecord } from '../../src/core/usage-record.js'
import type { UsageGroup, UsageQuestion, UsageSum } from '../../src/usage/usage-usage-reports.js'

const GROUPS: Readonly<Record<UsageGroup, (record: UsageRecord) => Partial<UsageSum>>> = {
  day: ({ atMs }) => ({ day: new Date(atMs).toISOString().slice(0, 'YYYY-MM-DD'.length) }),
  model: ({ model }) => ({ model }),
  channel: ({ channelId }) => ({ channelId }),
  key: ({ keyId }) => ({ keyId }),
}

/** The sums that a store has to come to, from the records themselves. */
export function expectedSums(all: readonly UsageRecord[], question: UsageQuestion): readonly UsageSum[] {
  const groups = new Map<string, UsageRecord[]>()
  if (question.groupBy.length === 0) groups.set('{}', [])
  for (const record of all.filter((each) => isAsked(each, question))) {
    const name = JSON.stringify(Object.assign({}, ...question.groupBy.map((group) => GROUPS[group](record))))
    groups.set(name, [...(groups.get(name) ?? []), record])
  }
  const sums = [...groups].map(([name, records]) => ({ ...(JSON.parse(name) as Partial<UsageSum>), ...sumOf(records) }))
  return sums.sort((one, other) => (orderOf(one, question) < orderOf(other, question) ? -1 : 1))
}

/** What is null comes last. */
const orderOf = (sum: UsageSum, { groupBy }: UsageQuestion): string =>
  groupBy.map((group) => sum[group === 'channel' ? 'channelId' : group === 'key' ? 'keyId' : group] ?? '~').join(' ')

const isAsked = (record: UsageRecord, { fromMs, toMs, ownerId, keyId, model, channelId }: UsageQuestion): boolean =>
  record.atMs >= fromMs &&
  record.atMs < toMs &&
  (ownerId ?? record.ownerId) === record.ownerId &&
  (keyId ?? record.keyId) === record.keyId &&
  (model ?? record.model) === record.model &&
  (channelId ?? record.channelId) === record.channelId

function sumOf(records: readonly UsageRecord[]): Omit<UsageSum, 'day' | 'model' | 'channelId' | 'keyId'> {
  const units: Record<string, number> = {}
  for (const unit of UNITS) {
    const counts = records.flatMap((record) => record.units[unit] ?? [])
    if (counts.length > 0) units[unit] = Number(totalOf(counts))
  }
  return {
    records: records.length,
    unpricedRecords: records.filter(({ pricing }) => pricing === 'unpriced').length,
    units: units,
    cost: totalOf(records.map(({ cost }) => cost ?? 0)),
  }
}

const totalOf = (numbers: readonly (string | number)[]): string =>
  numbers.reduce((sum, number) => sum.plus(number), new Big(0)).toFixed()
