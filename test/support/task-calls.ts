import type { Caller } from '../../src/core/caller.js'
import { callOf, type TaskLab, TEAM_A } from './task-lab.js'

/** A text2video create of this caller; `changes` lie over the order. */
export const made = (lab: TaskLab, externalTaskId: string, caller: Caller = TEAM_A, changes: object = {}) =>
  lab.engine.create(lab.order({ externalTaskId, ...changes }, caller), callOf(caller))

/** The text2video task that this caller has under this id. */
export const find = (lab: TaskLab, id: string, caller: Caller = TEAM_A) =>
  lab.engine.find('text2video', id, callOf(caller))
