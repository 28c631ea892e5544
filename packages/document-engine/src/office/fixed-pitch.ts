/** Names of fonts in which programs and listings are set. */
export const FIXED_PITCH =
  /^(?:courier|consolas|menlo|monaco|lucida console|source code|fira code|cascadia|jetbrains|inconsolata|andale|ocr)|\b(?:mono|monospace|typewriter)\b/i
