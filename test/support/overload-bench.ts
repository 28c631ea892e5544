/** The plain modules of bench/overload, with types for those who test them. */
const loadScript = (path: string): Promise<unknown> =>
  import(new URL(`../../bench/overload/${path}`, import.meta.url).href) as Promise<unknown>

export interface Tally {
  readonly sentLateMs: number[]
  count(outcome: string, dueMs: number, nowMs: number): void
  total(outcome: string): number
}

export interface Verdict {
  readonly text: string
  readonly code: number
}

export interface JudgedAnswer {
  readonly status: number
  readonly isRight: boolean
  readonly isPrompt: boolean
  readonly head: string
  readonly refusal: string
}

export const { Tally } = (await loadScript('tally.mjs')) as { Tally: new (startMs: number) => Tally }
export const { openLoads, outcomeOf } = (await loadScript('open-load.mjs')) as {
  openLoads: (load: object) => Promise<readonly object[]>
  outcomeOf: (answer: JudgedAnswer) => string
}
export const { overloadReport } = (await loadScript('overload-report.mjs')) as {
  overloadReport: (run: object) => Verdict
}
