/** Samples of one frame by the low bits of the configuration, on the 48 kHz clock Ogg counts with (RFC 6716, 3.1). */
const SPEECH_FRAMES = [480, 960, 1920, 2880] as const
const HYBRID_FRAMES = [480, 960] as const
const MUSIC_FRAMES = [120, 240, 480, 960] as const
const FIRST_HYBRID = 12
const FIRST_MUSIC = 16

/** How long an Opus packet sounds, in samples at 48 kHz; 0 for an empty one. Its first two bytes are enough. */
export function opusSamples(packet: Buffer): number {
  const [contents, count] = packet
  return contents === undefined ? 0 : frameSamples(contents >> 3) * frameCount(contents & 3, count)
}

function frameSamples(configuration: number): number {
  if (configuration >= FIRST_MUSIC) return MUSIC_FRAMES[configuration & 3] ?? 0
  return (configuration >= FIRST_HYBRID ? HYBRID_FRAMES[configuration & 1] : SPEECH_FRAMES[configuration & 3]) ?? 0
}

function frameCount(code: number, count = 0): number {
  if (code === 0) return 1
  return code === 3 ? count & 0x3f : 2
}
