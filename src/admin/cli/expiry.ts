import { isCalendarDay } from '../../core/calendar-day.js'
import { BadCommand } from './bad-command.js'

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const DATE = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** A time from now (`90d`), or a date; Unix milliseconds. Throws `BadCommand`. */
export function expiryOf(text: string, nowMs: number): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return nowMs + Number(count) * (UNIT_MS[unit] ?? 0)
  const [, day] = DATE.exec(text) ?? []
  const timeMs = day === undefined || !isCalendarDay(day) ? Number.NaN : Date.parse(text)
  if (Number.isNaN(timeMs))
    throw new BadCommand('--expires needs 90d, 12h or 30m, a date (2030-01-31, 2030-01-31T12:00:00Z), or none.')
  return timeMs
}
