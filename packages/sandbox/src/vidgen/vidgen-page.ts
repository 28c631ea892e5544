import { rejectField } from './vidgen-errors.js'

/** Which part of a list; `pageNum` counts from 1. */
export interface VidgenPage {
  readonly pageNum: number
  readonly pageSize: number
}

/** Throws VidgenRejection 1201. */
export function judgePage(query: URLSearchParams): VidgenPage {
  return { pageNum: pageNumber(query, 'pageNum', 1, 1000), pageSize: pageNumber(query, 'pageSize', 30, 500) }
}

function pageNumber(query: URLSearchParams, name: string, otherwise: number, most: number): number {
  const text = query.get(name) ?? String(otherwise)
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (value < 1 || value > most) rejectField(name, `must be a whole number from 1 to ${most}`)
  return value
}
