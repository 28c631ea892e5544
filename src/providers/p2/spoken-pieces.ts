import { assertInputLength, inputTooLong } from '../../dialects/input-too-long.js'
import { isSpeakable, textPieces } from './split-text.js'

/** In code points; what is longer than one synthesis takes is spoken in pieces. */
const MAXIMUM_CHARACTERS = 4096
/** Marked-up text cannot be parted, so it must fit into one synthesis. */
const MAXIMUM_SSML_BYTES = 1024

/**
 * What is spoken of a text, in order. Pieces that say nothing are left out, since the upstream refuses them; a text that
 * says nothing at all stays, so that the upstream is the judge of it. Throws `invalid_request` for a text too long.
 */
export function spokenPieces(input: string, isSsml: boolean): readonly string[] {
  assertInputLength(input, MAXIMUM_CHARACTERS)
  if (isSsml) {
    if (Buffer.byteLength(input) > MAXIMUM_SSML_BYTES) throw inputTooLong(`${MAXIMUM_SSML_BYTES} bytes of SSML`)
    return [input]
  }
  const pieces = textPieces(input)
  const spoken = pieces.filter(isSpeakable)
  return spoken.length > 0 ? spoken : pieces
}
