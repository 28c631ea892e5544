import { describe, expect, it } from '@jest/globals'
import { endedTask } from './ended-task.js'
import type { Task } from './task.js'

const task = (object: string | undefined, state: Task['state'] = 'succeed'): Task => ({
  id: 'tsk_1',
  kind: 'text2video',
  ownerId: 'team-a',
  channelId: 'main',
  model: 'vidgen-v1',
  state,
  upstreamExternalId: 'x',
  callbackToken: 't',
  nextPollAtMs: 0,
  polls: 0,
  misses: 0,
  createdAtMs: 1000,
  updatedAtMs: 5000,
  deadlineAtMs: 0,
  ...(object === undefined ? {} : { object }),
})

describe('A task that has ended', () => {
  it('leaves who pays for what', () => {
    expect(endedTask(task('{}'))).toEqual({
      id: 'video tsk_1',
      ownerId: 'team-a',
      taskClass: 'video',
      route: '/vidgen/v1/videos/text2video',
      model: 'vidgen-v1',
      channelId: 'main',
      hasSucceeded: true,
      reported: {},
      durationMs: 4000,
    })
    expect(endedTask(task('{}', 'failed')).hasSucceeded).toBe(false)
  })

  it.each<[string | undefined, object]>([
    [
      '{"final_unit_deduction":"2","final_balance_deduction":{"quota":"0.28","list_price":"0.30"}}',
      { final_unit_deduction: 2, final_balance_deduction: { quota: 0.28, list_price: 0.3 } },
    ],
    ['{"final_unit_deduction":2.50}', { final_unit_deduction: 2.5 }],
    ['{"final_unit_deduction":"a lot","final_balance_deduction":7}', {}],
    ['{"final_balance_deduction":null}', {}],
    ['[]', {}],
    ['null', {}],
    ['{"cut', {}],
    [undefined, {}],
  ])('shows what its upstream took off the account, whatever its object holds: %s', (object, reported) => {
    expect(endedTask(task(object)).reported).toEqual(reported)
  })
})
