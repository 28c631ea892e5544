import { isNativeError } from 'node:util/types'

/** Whether the system, or Node, said so: `ENOENT`, `EAGAIN` … */
export const hasCode = (error: unknown, code: string): boolean =>
  isNativeError(error) && 'code' in error && error.code === code
