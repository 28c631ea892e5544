/** Whether the calendar has the day, `YYYY-MM-DD`: `Date` takes the 30th of February for one in March. */
export function isCalendarDay(day: string): boolean {
  const atMs = Date.parse(day)
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(day)
}
