import { expect, it } from '@jest/globals'
import { someSubmitted, someTask, START_MS } from '../support/task-rows.js'
import type { Repositories } from './task-repository.contract.js'

export function describeLookups(repositories: () => Repositories): void {
  it('finds a task by the id of its upstream and by the external id of its owner', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks, { externalTaskId: 'mine' }, { upstreamTaskId: 'theirs' })
    expect(await tasks.find('key-a', 'text2video', 'theirs')).toMatchObject({ id })
    expect(await tasks.find('key-a', 'text2video', 'mine')).toMatchObject({ id })
  })

  it('finds nothing for another owner, for another kind, or by our own id', async () => {
    const { tasks } = repositories()
    const id = await someSubmitted(tasks, {}, { upstreamTaskId: 'theirs' })
    expect(await tasks.find('key-b', 'text2video', 'theirs')).toBeUndefined()
    expect(await tasks.find('key-a', 'multi-image2video', 'theirs')).toBeUndefined()
    expect(await tasks.find('key-a', 'text2video', id)).toBeUndefined()
  })

  it('prefers the upstream id where one task has as external id what another has as id', async () => {
    const { tasks } = repositories()
    const byId = await someSubmitted(tasks, {}, { upstreamTaskId: 'same' })
    await someSubmitted(tasks, { externalTaskId: 'same' })
    expect(await tasks.find('key-a', 'text2video', 'same')).toMatchObject({ id: byId })
  })

  it('knows whether anybody has a task of that kind under an id', async () => {
    const { tasks } = repositories()
    await someSubmitted(tasks, { externalTaskId: 'mine' }, { upstreamTaskId: 'theirs' })
    const known = ['theirs', 'mine', 'neither'].map((id) => tasks.isKnown('text2video', id))
    expect(await Promise.all(known)).toEqual([true, true, false])
    expect(await tasks.isKnown('multi-image2video', 'mine')).toBe(false)
  })

  it("lists the owner's tasks of one kind, newest first, page by page, without those that have no id yet", async () => {
    const { tasks } = repositories()
    const ids = []
    for (let index = 0; index < 5; index += 1) {
      ids.unshift(await someSubmitted(tasks, { createdAtMs: START_MS + (index >> 1) }))
    }
    await someSubmitted(tasks, { kind: 'multi-image2video' })
    await someSubmitted(tasks, { ownerId: 'key-b' })
    await tasks.recordIntent(someTask())
    const page = async (offset: number, limit: number): Promise<string[]> =>
      (await tasks.list('key-a', 'text2video', { offset, limit })).map(({ id }) => id)
    const whole = await page(0, 500)
    expect([...whole].sort()).toEqual([...ids].sort())
    expect([whole[0], whole.slice(1, 3).sort(), whole.slice(3).sort()]).toEqual([
      ids[0],
      ids.slice(1, 3).sort(),
      ids.slice(3).sort(),
    ])
    expect([...(await page(0, 2)), ...(await page(2, 2)), ...(await page(4, 2))]).toEqual(whole)
    expect(await page(5, 2)).toEqual([])
  })

  it('gives back big integers, number spelling, key order and any text as they were', async () => {
    const { tasks } = repositories()
    const object = '{"b":1.0,"a":9223372036854775807123,"e":1e400,"a":"twice","t":"😀 \\u0001 \'\\\\ $1 {}"}'
    const id = await someSubmitted(tasks, { externalTaskId: "o'b\\r{1}" }, { object })
    expect(await tasks.find('key-a', 'text2video', "o'b\\r{1}")).toMatchObject({ id, object })
  })

  it('counts how many stand in each state', async () => {
    const { tasks } = repositories()
    expect(await tasks.countByState()).toEqual({})
    await tasks.recordIntent(someTask())
    await someSubmitted(tasks)
    await someSubmitted(tasks, {}, { state: 'succeed' })
    await someSubmitted(tasks, {}, { state: 'succeed' })
    expect(await tasks.countByState()).toEqual({ creating: 1, submitted: 1, succeed: 2 })
  })
}
