import type { Query } from '../core/dto.js'
import { GatewayError, quoted } from '../core/errors.js'

/** Page sizes of the messages upstream. */
export const PAGE_SIZE = { minimum: 1, maximum: 1000, fallback: 20 } as const

/** A page of models; at most one of the ids is given. */
export interface PageRequest {
  readonly limit: number
  readonly afterId?: string
  readonly beforeId?: string
}

/** The query of a messages client. Throws `invalid_request` naming the parameter. */
export function readPageRequest(query: Query): PageRequest {
  const { limit, after_id: afterId, before_id: beforeId } = query
  if (afterId !== undefined && beforeId !== undefined) throw invalid('before_id', 'cannot be used with after_id')
  return {
    limit: readLimit(limit),
    ...(afterId === undefined ? {} : { afterId: oneText(afterId, 'after_id') }),
    ...(beforeId === undefined ? {} : { beforeId: oneText(beforeId, 'before_id') }),
  }
}

function readLimit(value: unknown): number {
  if (value === undefined) return PAGE_SIZE.fallback
  const number = typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : 0
  if (number >= PAGE_SIZE.minimum && number <= PAGE_SIZE.maximum) return number
  throw invalid('limit', `must be a whole number from ${PAGE_SIZE.minimum} to ${PAGE_SIZE.maximum}`)
}

function oneText(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw invalid(name, 'must be the id of one model')
}

/**
 * The page behind `afterId`, or the one that ends before `beforeId`; `hasMore` = further ones follow in that direction. Throws
 * `invalid_request` for an id that is not in the list.
 */
export function pageOf<Item extends { readonly id: string }>(
  items: readonly Item[],
  { limit, afterId, beforeId }: PageRequest,
): { readonly page: readonly Item[]; readonly hasMore: boolean } {
  if (beforeId !== undefined) {
    const end = positionOf(items, beforeId, 'before_id')
    const start = Math.max(0, end - limit)
    return { page: items.slice(start, end), hasMore: start > 0 }
  }
  const start = afterId === undefined ? 0 : positionOf(items, afterId, 'after_id') + 1
  return { page: items.slice(start, start + limit), hasMore: start + limit < items.length }
}

function positionOf(items: readonly { readonly id: string }[], id: string, name: string): number {
  const position = items.findIndex((item) => item.id === id)
  if (position === -1) throw invalid(name, `there is no model ${quoted(id)} in this list`)
  return position
}

const invalid = (param: string, problem: string): GatewayError =>
  new GatewayError('invalid_request', `${param}: ${problem}`, { param })
