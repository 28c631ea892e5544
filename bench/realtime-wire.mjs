/**
 * The events both ends of the realtime benchmark agree on: audio of 100 ms as pcm16 (6,400 characters of base64), whose
 * first eight characters are the number of the frame within its session. Digits are base64 like any other.
 */
const AUDIO_CHARACTERS = 6_400
const DIGITS = 8
const FILLER = Array.from(
  { length: AUDIO_CHARACTERS - DIGITS },
  (_, at) => 'AZaz09+/Qk3x'[(at * 7 + (at >> 5)) % 12],
).join('')

/** Anything shorter is an event about the session. */
export const AUDIO_BYTES = AUDIO_CHARACTERS

const numbered = (index) => String(index).padStart(DIGITS, '0')

/** An event whose audio can be renumbered in place: its bytes, and the position of the number in them. */
function template(event, member) {
  const bytes = Buffer.from(JSON.stringify(event))
  return { bytes, at: bytes.indexOf(`"${member}":"`) + member.length + 4 }
}

export const APPEND = template({ type: 'input_audio_buffer.append', audio: numbered(0) + FILLER }, 'audio')

/** As a GA upstream sends it; `obfuscation` is its padding, which beta never had. */
const GA_DELTA = {
  type: 'response.output_audio.delta',
  event_id: 'event_bench00000000000001',
  response_id: 'resp_bench00000000000001',
  item_id: 'item_bench00000000000001',
  output_index: 0,
  content_index: 0,
  delta: numbered(0) + FILLER,
}
export const DELTA = template({ ...GA_DELTA, obfuscation: 'aK3x' }, 'delta')

/** Writes the number of a frame, its digits changed by `mask(at)` where they go over the wire masked. */
export function writeNumber(bytes, at, index, mask = () => 0) {
  let rest = index
  for (let place = at + DIGITS - 1; place >= at; place--) {
    bytes[place] = (0x30 + (rest % 10)) ^ mask(place)
    rest = Math.floor(rest / 10)
  }
}

/** What a session is opened with, for each dialect of a client; one that names its dialect in a header needs nothing. */
export const SESSION_UPDATE = JSON.stringify({
  type: 'session.update',
  session: { type: 'realtime', instructions: 'x' },
})
export const sessionEvent = (type) =>
  JSON.stringify({
    type,
    event_id: 'event_bench',
    session: { type: 'realtime', object: 'realtime.session', id: 'sess_bench' },
  })

export const isAppend = (event) => event.type === 'input_audio_buffer.append' && event.audio === numbered(0) + FILLER

/** The delta as a client of the dialect must get it: beta knows another name and no padding. */
export function isDelta(dialect) {
  const type = dialect === 'ga' ? GA_DELTA.type : 'response.audio.delta'
  return (event) =>
    event.type === type &&
    event.delta === GA_DELTA.delta &&
    Object.keys(GA_DELTA).every((name) => name === 'type' || event[name] === GA_DELTA[name]) &&
    (event.obfuscation === undefined) === (dialect === 'beta')
}

/**
 * Checks the audio frames of one session. The first is parsed and checked in full; every other must have the same bytes
 * and the next number.
 */
export class FrameCheck {
  frames = 0
  outOfOrder = 0
  changed = 0
  #isRight
  #first
  #at = 0
  #next = 1

  /** @param {(event: object) => boolean} isRight checks the first frame, numbered 0 */
  constructor(isRight) {
    this.#isRight = isRight
  }

  take(bytes, start, end) {
    this.frames += 1
    if (this.#first === undefined) return this.#learn(Buffer.from(bytes.subarray(start, end)))
    if (!this.#isAlike(bytes, start, end)) this.changed += 1
    const number = this.#number(bytes, start)
    if (number !== this.#next) this.outOfOrder += 1
    this.#next = number + 1
  }

  #learn(frame) {
    this.#first = frame
    this.#at = frame.indexOf(numbered(0) + FILLER)
    if (this.#at === -1 || !this.#isRight(JSON.parse(frame.toString()))) this.changed += 1
  }

  #isAlike(bytes, start, end) {
    const first = this.#first
    const tail = this.#at + DIGITS
    return (
      end - start === first.length &&
      bytes.compare(first, 0, this.#at, start, start + this.#at) === 0 &&
      bytes.compare(first, tail, first.length, start + tail, end) === 0
    )
  }

  #number(bytes, start) {
    let number = 0
    for (let at = start + this.#at; at < start + this.#at + DIGITS; at++) number = number * 10 + bytes[at] - 0x30
    return number
  }
}
