import { describe, expect, it } from '@jest/globals'
import { cpuMs } from '../../../test/support/cpu-time.js'
import { UNKNOWN_TASK } from './imggen-codes.table.js'

describe('The words for a task that is not known', () => {
  it.each(['task_not_exist', 'Task is not found', 'unknown task', '任务不存在', '未找到该任务', '找不到编号为1的任务'])(
    'are told in %j',
    (words) => {
      expect(UNKNOWN_TASK.test(words)).toBe(true)
    },
  )

  it.each(['', 'the task failed', '任务失败'])('are not told in %j', (words) => {
    expect(UNKNOWN_TASK.test(words)).toBe(false)
  })

  it('are looked for in a long text in time proportional to its length', () => {
    const startedAtMs = cpuMs()
    expect(UNKNOWN_TASK.test('未找到'.repeat(30_000))).toBe(false)
    expect(cpuMs() - startedAtMs).toBeLessThan(300)
  })
})
