/** Bit n is set for each wanted name that is `names[n]`; at most 31 names. */
export const bitsOf = <Name>(names: readonly Name[], wanted: readonly Name[]): number =>
  wanted.reduce((bits, name) => bits | (1 << names.indexOf(name)), 0)
