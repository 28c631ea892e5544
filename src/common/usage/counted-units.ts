import type { Units } from '../http/call.js'

/**
 * What was used, under one name for each unit, whatever the upstream calls it; absent = the upstream has no such unit.
 * Parts of a whole (`cachedTokens`, `audioInputTokens`, …) are contained in it (`promptTokens`, `completionTokens`).
 */
export interface CountedUnits {
  readonly promptTokens?: number
  readonly cachedTokens?: number
  readonly audioInputTokens?: number
  readonly completionTokens?: number
  readonly audioOutputTokens?: number
  readonly reasoningTokens?: number
  readonly characters?: number
  readonly audioSeconds?: number
  readonly videos?: number
  readonly images?: number
  readonly pages?: number
}

/** Reads the usage objects of every dialect. Whatever it does not know it leaves out. */
export function countedUnits(units: Units): CountedUnits {
  throw new Error(`not written yet: ${Object.keys(units).join()}`)
}
