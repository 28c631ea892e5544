/** Up to here a copy costs less than a write of its own; memory set aside for copies is what collections cost most for. */
const SMALL_BYTES = 4_096

/** The same bytes in fewer pieces: small ones next to each other are copied into one, larger ones stay as they are. */
export function joinedPieces(pieces: readonly Buffer[]): Buffer[] {
  const joined: Buffer[] = []
  let small: Buffer[] = []
  for (const piece of pieces) {
    if (piece.length < SMALL_BYTES) {
      small.push(piece)
      continue
    }
    joined.push(...oneOf(small), piece)
    small = []
  }
  joined.push(...oneOf(small))
  return joined
}

const oneOf = (pieces: readonly Buffer[]): readonly Buffer[] => (pieces.length > 1 ? [Buffer.concat(pieces)] : pieces)
