import { AudioFault, type FramedAudio } from './audio-fault.js'
import { oggPages, type OggPage } from './ogg-pages.js'

/** Opus counts its samples on this clock, whatever was encoded (RFC 7845 section 4). */
const CLOCK_HZ = 48_000

export interface OggOpusStream extends FramedAudio {
  /** Samples the decoder makes at the beginning and nobody hears. */
  readonly preSkip: number
}

/** One Ogg Opus stream from its first page to its last. Throws an AudioFault; a chain of several is one, too. */
export function oggOpusStream(bytes: Buffer): OggOpusStream {
  const pages = oggPages(bytes)
  assertOneStream(pages)
  const [head, tags, ...frames] = opusPacketsOf(pages)
  if (head === undefined || head.length < 19 || head.toString('latin1', 0, 8) !== 'OpusHead')
    throw new AudioFault('it does not begin with OpusHead')
  if (tags?.toString('latin1', 0, 8) !== 'OpusTags') throw new AudioFault('OpusTags does not follow OpusHead')
  const preSkip = head.readUInt16LE(10)
  const granules = pages.map(({ granule }) => granule).filter((granule) => granule !== undefined)
  if (granules.some((granule, index) => granule < (granules[index - 1] ?? 0)))
    throw new AudioFault('granule positions run backwards')
  const samples = (granules.at(-1) ?? 0) - preSkip
  return { frames, sampleRateHz: CLOCK_HZ, channels: head.readUInt8(9), samples, preSkip, warnings: [] }
}

function assertOneStream(pages: readonly OggPage[]): void {
  pages.forEach((page, index) => {
    if (page.isFirst !== (index === 0)) throw new AudioFault(`page ${index} is wrong about being the first`)
    if (page.isLast !== (index === pages.length - 1))
      throw new AudioFault(`page ${index} is wrong about being the last`)
    if (page.sequence !== index) throw new AudioFault(`page ${index} says that it is page ${page.sequence}`)
    if (page.serial !== pages[0]?.serial) throw new AudioFault(`page ${index} belongs to another stream`)
  })
}

/** Packets end with the first segment shorter than 255 bytes and may lie on several pages (RFC 3533 section 5). */
function opusPacketsOf(pages: readonly OggPage[]): Buffer[] {
  const packets: Buffer[] = []
  let open: Buffer[] = []
  for (const page of pages) {
    if (page.isContinued !== open.length > 0) throw new AudioFault('a packet is torn between two pages')
    for (const segment of page.segments) {
      open.push(segment)
      if (segment.length === 255) continue
      packets.push(Buffer.concat(open))
      open = []
    }
  }
  if (open.length > 0) throw new AudioFault('the last packet breaks off')
  return packets
}
