/** Numbers in [0, 1) that are the same in every run (a linear congruential generator). */
export function seededRandom(seed = 42): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
