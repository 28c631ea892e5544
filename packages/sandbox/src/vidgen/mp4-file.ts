/** Units per second of every duration in the file. */
const TIMESCALE = 1000
const VIDEO_TRACK = 1
/** The unity matrix: the picture as it is. */
const MATRIX = Buffer.concat([0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].map((value) => uint(value, 4)))

export interface Mp4Facts {
  readonly durationMs: number
  readonly width: number
  readonly height: number
}

/** A video file that holds no picture but tells size and duration: `ftyp` and `moov` with one video track. */
export function mp4File(facts: Mp4Facts): Buffer {
  const ftyp = box('ftyp', Buffer.from('isom'), uint(512, 4), Buffer.from('isomiso2mp41'))
  return Buffer.concat([ftyp, box('moov', movieHeader(facts), track(facts))])
}

function movieHeader({ durationMs }: Mp4Facts): Buffer {
  const times = [uint(0, 8), uint(TIMESCALE, 4), uint(durationMs, 4)]
  const rateAndVolume = [uint(0x10000, 4), uint(0x100, 2), uint(0, 10)]
  return fullBox('mvhd', 0, ...times, ...rateAndVolume, MATRIX, uint(0, 24), uint(VIDEO_TRACK + 1, 4))
}

function track(facts: Mp4Facts): Buffer {
  const { durationMs, width, height } = facts
  const isShown = 3
  const head = fullBox(
    'tkhd',
    isShown,
    ...[uint(0, 8), uint(VIDEO_TRACK, 4), uint(0, 4), uint(durationMs, 4), uint(0, 16), MATRIX],
    // Fixed point 16.16.
    ...[uint(width, 2), uint(0, 2), uint(height, 2), uint(0, 2)],
  )
  const language = 0x55c4
  const mediaHead = fullBox(
    'mdhd',
    0,
    uint(0, 8),
    uint(TIMESCALE, 4),
    uint(durationMs, 4),
    uint(language, 2),
    uint(0, 2),
  )
  const handler = fullBox('hdlr', 0, uint(0, 4), Buffer.from('vide'), uint(0, 12), Buffer.from('VideoHandler\0'))
  const isInThisFile = 1
  const reference = box('dinf', fullBox('dref', 0, uint(1, 4), fullBox('url ', isInThisFile)))
  const information = box('minf', fullBox('vmhd', 1, uint(0, 8)), reference, sampleTable(facts))
  return box('trak', head, box('mdia', mediaHead, handler, information))
}

/** One kind of picture, and none of it. */
function sampleTable({ width, height }: Mp4Facts): Buffer {
  const resolution = uint(0x480000, 4)
  const entry = box(
    'jpeg',
    ...[uint(0, 6), uint(1, 2), uint(0, 16), uint(width, 2), uint(height, 2), resolution, resolution, uint(0, 4)],
    ...[uint(1, 2), uint(0, 32), uint(24, 2), uint(0xffff, 2)],
  )
  const empty = ['stts', 'stsc', 'stco'].map((name) => fullBox(name, 0, uint(0, 4)))
  return box('stbl', fullBox('stsd', 0, uint(1, 4), entry), ...empty, fullBox('stsz', 0, uint(0, 8)))
}

function fullBox(type: string, flags: number, ...content: readonly Buffer[]): Buffer {
  return box(type, uint(flags, 4), ...content)
}

function box(type: string, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([uint(body.length + 8, 4), Buffer.from(type, 'latin1'), body])
}

/** Big-endian, filled up with zeros on the left. */
function uint(value: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, Math.max(0, size - 4), Math.min(4, size))
  return bytes
}
