/** Of every limit per minute; a window begins with the first use and ends this much later. */
export const WINDOW_SECONDS = 60

/** There at once where this process counts, and later where it has to ask. */
export type Soon<Value> = Value | Promise<Value>

/** How a window stands, in points. */
export interface WindowState {
  readonly used: number
  /** What may be used at all: the limit, or this process's share of it. */
  readonly allowed: number
  /** On the performance clock. */
  readonly endsAtMs: number
}

/** What came of an attempt to use points. */
export interface Addition extends WindowState {
  /** False: nothing was counted. */
  readonly fits: boolean
  /** What was counted: never more than a whole window allows. */
  readonly counted: number
  /** Who has counted it: nobody else can take it out again. */
  readonly home: WindowHome
}

/** Fixed windows of one minute by key. No method rejects; one that cannot reach its counter resolves with undefined. */
export interface LimitWindows {
  /** Counts points if the window has them left, else nothing. */
  add(key: string, points: number, limit: number): Soon<Addition | undefined>
  /** Counts points that are used already, left or not. */
  debit(key: string, points: number, limit: number): Soon<WindowState | undefined>
  /** The open window; undefined also when there is none. */
  peek(key: string, limit: number): Soon<WindowState | undefined>
}

export interface WindowHome {
  /** Takes points out again, if the window they were counted in, which ends at `endsAtMs`, is still open. */
  giveBack(key: string, points: number, limit: number, endsAtMs: number): Soon<WindowState | undefined>
}
