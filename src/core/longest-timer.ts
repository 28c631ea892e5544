/** In milliseconds; a timer for longer ends at once. */
export const LONGEST_TIMER_MS = 2_147_483_647
