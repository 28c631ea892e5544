import { hasEscape, isAt, type MemberSpan, memberSpans, stringAt } from './json-spans.js'

/** The type of an event and where its value stands, quotes included. */
export interface EventType {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** What a frame loses or gets instead: the bytes `[start, end)` become `text`. */
export interface Cut {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The top-level members of one frame, found in one pass that steps over every value; never throws. */
export class FrameScan {
  private constructor(
    private readonly frame: Buffer,
    private readonly members: readonly MemberSpan[],
  ) {}

  /** `undefined` for bytes that are not one JSON object. */
  static of(frame: Buffer): FrameScan | undefined {
    const members = memberSpans(frame)
    return members === undefined ? undefined : new FrameScan(frame, members)
  }

  get size(): number {
    return this.members.length
  }

  /** The last member of that (ASCII) name: of repeated keys the last one counts, as for a parser. */
  member(name: string): MemberSpan | undefined {
    for (let index = this.members.length - 1; index >= 0; index--) {
      const member = this.members[index]
      if (member !== undefined && this.isNamed(member, name)) return member
    }
    return undefined
  }

  /** The text of a member whose value is a string. */
  text(name: string): string | undefined {
    const member = this.member(name)
    return member === undefined ? undefined : stringAt(this.frame, member.valueStart, member.valueEnd)
  }

  type(): EventType | undefined {
    const member = this.member('type')
    if (member === undefined) return undefined
    const type = stringAt(this.frame, member.valueStart, member.valueEnd)
    return type === undefined ? undefined : { type, start: member.valueStart, end: member.valueEnd }
  }

  /** The bytes that every member of that name takes with it: one comma each, so that the rest stays JSON. */
  removal(name: string): Cut[] {
    const cuts: Cut[] = []
    let hasKept = false
    for (let index = 0; index < this.members.length; index++) {
      const member = this.members[index]
      if (member === undefined || !this.isNamed(member, name)) {
        hasKept = true
        continue
      }
      const previous = this.members[index - 1]
      const next = this.members[index + 1]
      if (hasKept && previous !== undefined) cuts.push({ start: previous.valueEnd, end: member.valueEnd, text: '' })
      else cuts.push({ start: member.keyStart, end: next?.keyStart ?? member.valueEnd, text: '' })
    }
    return cuts
  }

  private isNamed({ keyStart, keyEnd }: MemberSpan, name: string): boolean {
    if (isAt(this.frame, keyStart + 1, keyEnd - 1, name)) return true
    return hasEscape(this.frame, keyStart, keyEnd) && stringAt(this.frame, keyStart, keyEnd) === name
  }
}

/** The type of an event without a look into its payload: about a search for one byte over the frame. */
export const eventTypeOf = (frame: Buffer): EventType | undefined => FrameScan.of(frame)?.type()

/** The frame with these bytes changed, in one copy; cuts do not overlap. The very same frame without any. */
export function splice(frame: Buffer, cuts: Cut[]): Buffer {
  if (cuts.length === 0) return frame
  cuts.sort(byStart)
  let length = frame.length
  for (const { start, end, text } of cuts) length += Buffer.byteLength(text) - (end - start)
  const spliced = Buffer.allocUnsafe(length)
  let written = 0
  let position = 0
  for (const { start, end, text } of cuts) {
    written += frame.copy(spliced, written, position, start)
    if (text !== '') written += spliced.write(text, written)
    position = end
  }
  frame.copy(spliced, written, position)
  return spliced
}

const byStart = (one: Cut, other: Cut): number => one.start - other.start
