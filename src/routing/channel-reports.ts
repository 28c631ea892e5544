/** How one channel does at this moment. Times in milliseconds. */
export interface ChannelReport {
  readonly channelId: string
  /** `closed` = calls as usual, `half_open` = one call may try whether it works again, `open` = spared. */
  readonly state: 'closed' | 'half_open' | 'open'
  readonly consecutiveFailures: number
  /** Until a call may try it again; 0 = not open, or one may try now. */
  readonly openForMs: number
  /** Calls that wait for their first byte. */
  readonly waiting: number
  /** To the first byte, on average; undefined where nobody knows. */
  readonly latencyMs: number | undefined
}

/** What an operator may know of channels, and do about them; the token under which that is injected. */
export abstract class ChannelReports {
  /** Every channel of the configuration, in its order, as this process sees it. */
  abstract snapshot(): readonly ChannelReport[]
  /** Closes the channel's breaker, as if it had never failed. */
  abstract reset(channelId: string): void
}
