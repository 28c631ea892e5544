import type { Units } from '../core/request-context.js'
import type { EndedTask } from '../core/usage-recorder.js'
import type { Task } from './task.js'

/** What a task that has just ended leaves to be recorded as used. */
export function endedTask(task: Task): EndedTask {
  return {
    id: `video ${task.id}`,
    ownerId: task.ownerId,
    taskClass: 'video',
    route: `/vidgen/v1/videos/${task.kind}`,
    model: task.model,
    channelId: task.channelId,
    hasSucceeded: task.state === 'succeed',
    reported: deductions(task.object),
    durationMs: task.updatedAtMs - task.createdAtMs,
  }
}

/** What the upstream took off the account; it spells its numbers as text. */
function deductions(object: string | undefined): Units {
  const {
    final_unit_deduction: units,
    final_balance_deduction: { quota, list_price: listPrice },
  } = fieldsOf(object)
  const balance = { ...figure('quota', quota), ...figure('list_price', listPrice) }
  return {
    ...figure('final_unit_deduction', units),
    ...(Object.keys(balance).length === 0 ? {} : { final_balance_deduction: balance }),
  }
}

interface DeductionFields {
  readonly final_unit_deduction?: unknown
  readonly final_balance_deduction: { readonly quota?: unknown; readonly list_price?: unknown }
}

function fieldsOf(object: string | undefined): DeductionFields {
  const nothing: DeductionFields = { final_balance_deduction: {} }
  try {
    const fields = JSON.parse(object ?? '{}') as Partial<DeductionFields>
    return { ...nothing, ...fields, final_balance_deduction: fields.final_balance_deduction ?? {} }
  } catch {
    return nothing
  }
}

function figure(name: string, value: unknown): Units {
  const number = typeof value === 'string' && /^\d{1,15}(?:\.\d{1,15})?$/.test(value) ? Number(value) : value
  return typeof number === 'number' ? { [name]: number } : {}
}
