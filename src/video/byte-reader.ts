/** Gives out small pieces of something long, from wherever it is kept. */
export interface ByteReader {
  /** Up to `length` bytes from `position`; fewer at the end. */
  read(position: number, length: number): Buffer
}
