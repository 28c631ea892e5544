import { Controller, Injectable, Query as QueryString } from '@nestjs/common'
import { type Caller, ownerOf } from '../core/caller.js'
import type { Query } from '../core/dto.js'
import {
  CONCURRENCY_LIMIT_NAMES,
  type ConcurrencyLimitName,
  MINUTE_LIMIT_NAMES,
  type MinuteLimitName,
} from '../core/quota.js'
import type { RequestContext } from '../core/request-context.js'
import type { KeyLimiter } from '../limits/key-limiter.js'
import { remainingOf, resetMsOf } from '../limits/limit-errors.js'
import { RateLimiter } from '../limits/rate-limiter.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import {
  assertKnown,
  cursorOf,
  LONGEST_PERIOD_MS,
  type Period,
  readCursor,
  readGroups,
  readLimit,
  readPeriod,
  UsageRecordsDto,
  UsageSumsDto,
} from '../usage/usage.dto.js'
import { UsageReports } from '../usage/usage.repository.js'
import { LIMITS, USAGE, USAGE_RECORDS } from './account.endpoints.js'

/** How one limit stands. */
interface LimitState {
  readonly limit: number
  readonly remaining: number
  /** Until all of it is there again; 0 when all of it is. */
  readonly reset_seconds?: number
  readonly in_use?: number
}

export interface LimitsResponse {
  readonly object: 'limits'
  /** Whose limits they are: `key:<id>`, or `bearer:` and a part of a digest. */
  readonly scope: string
  /** Whether all replicas count together at this moment. */
  readonly shared: boolean
  /** Only limits that there are. */
  readonly limits: Readonly<Record<string, LimitState>>
}

/** The caller's own limits, as they stand now, on all replicas. */
@Injectable()
export class LimitsService {
  constructor(private readonly rateLimiter: RateLimiter) {}

  async show(caller: Caller): Promise<LimitsResponse> {
    const account = this.rateLimiter.keyLimiterOf(caller)
    const states = await Promise.all([
      ...MINUTE_LIMIT_NAMES.map(async (name) => ({ name, state: await minuteState(account, name) })),
      ...CONCURRENCY_LIMIT_NAMES.map(async (name) => ({ name, state: await heldState(account, name) })),
    ])
    const limits: Record<string, LimitState> = {}
    for (const { name, state } of states) if (state !== undefined) limits[name] = state
    return { object: 'limits', scope: account.scope, shared: this.rateLimiter.isShared, limits }
  }
}

async function minuteState(account: KeyLimiter, name: MinuteLimitName): Promise<LimitState | undefined> {
  const limit = account.limits[name]
  if (limit === undefined) return undefined
  const state = await account.peek(name)
  const resetSeconds = Math.ceil(resetMsOf(state) / 1000)
  return { limit, remaining: remainingOf(name, limit, state), reset_seconds: resetSeconds }
}

async function heldState(account: KeyLimiter, name: ConcurrencyLimitName): Promise<LimitState | undefined> {
  const limit = account.limits[name]
  if (limit === undefined) return undefined
  const inUse = await account.inUse(name)
  return { limit, remaining: Math.max(0, limit - inUse), in_use: inUse }
}

@Controller()
export class LimitsController {
  constructor(private readonly limits: LimitsService) {}

  @Endpoint(LIMITS)
  show(@CurrentRequest() call: RequestContext): Promise<LimitsResponse> {
    return this.limits.show(call.caller)
  }
}

/** A caller's own usage. */
@Injectable()
export class UsageService {
  constructor(private readonly reports: UsageReports) {}

  /** Rejects with `invalid_request`, naming the parameter, and as `UsageReports` does. */
  async sums(query: Query, call: RequestContext): Promise<UsageSumsDto> {
    assertKnown(query, ['from', 'to', 'group_by'])
    const period = periodOf(query)
    const groupBy = readGroups(query)
    return new UsageSumsDto(period, await this.reports.sums({ ...period, groupBy, ownerId: ownerOf(call.caller) }))
  }

  /** The same for single records. */
  async records(query: Query, call: RequestContext): Promise<UsageRecordsDto> {
    assertKnown(query, ['from', 'to', 'limit', 'cursor'])
    const period = periodOf(query)
    const limit = readLimit(query)
    const after = readCursor(query)
    const page = { ...period, ownerId: ownerOf(call.caller), ...(after === undefined ? {} : { after }) }
    // One more than is shown tells whether there is another page.
    const found = await this.reports.list({ ...page, limit: limit + 1 })
    const shown = found.slice(0, limit)
    const last = shown.at(-1)
    return new UsageRecordsDto(shown, last === undefined || found.length <= limit ? null : cursorOf(last))
  }
}

const periodOf = (query: Query): Period => readPeriod(query, Date.now() + 1, LONGEST_PERIOD_MS)

@Controller()
export class UsageController {
  constructor(private readonly usage: UsageService) {}

  @Endpoint(USAGE)
  sums(@QueryString() query: Query, @CurrentRequest() call: RequestContext): Promise<UsageSumsDto> {
    return this.usage.sums(query, call)
  }

  @Endpoint(USAGE_RECORDS)
  records(@QueryString() query: Query, @CurrentRequest() call: RequestContext): Promise<UsageRecordsDto> {
    return this.usage.records(query, call)
  }
}
