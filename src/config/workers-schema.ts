import { integer } from './scalar-schemas.js'
import type { Schema } from './schema-schema.js'

/** Processes that serve one port; `auto` = one for each processor. */
export type WorkerCount = number | 'auto'

const processes = integer({ min: 1, max: 128 })

/** Numbers also as text, as they come from the environment. */
export const workers: Schema<WorkerCount> = {
  read(value, at) {
    if (value === 'auto') return value
    const isWord = typeof value === 'string' && !/^-?\d/.test(value)
    return isWord ? at.fault('must be an integer from 1 to 128, or auto') : processes.read(value, at)
  },
}
