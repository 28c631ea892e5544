import { notAudio, undecodable, type AudioFacts } from './audio-facts.js'
import type { ByteWindow } from './byte-window.js'

const MAX_BOXES = 4096
const PICTURE_BRANDS: ReadonlySet<string> = new Set(['avif', 'avis', 'heic', 'heix', 'mif1', 'msf1', 'crx '])
const AUDIO_BRANDS: ReadonlySet<string> = new Set(['M4A ', 'M4B ', 'M4P '])

interface Box {
  readonly type: string
  readonly content: number
  /** May lie beyond the file when the upload was cut. */
  readonly end: number
}

export function isMp4(head: Buffer): boolean {
  return head.toString('latin1', 4, 8) === 'ftyp'
}

/** Looks for a sound track and for media data; the track list may come after the data. */
export async function inspectMp4(bytes: ByteWindow, extension: string): Promise<AudioFacts> {
  const brand = (await bytes.bytes(8, 4)).toString('latin1')
  if (PICTURE_BRANDS.has(brand)) throw notAudio()
  let handlers: ReadonlySet<string> | undefined
  let hasData = false
  for await (const box of boxes(bytes, 0, bytes.size)) {
    if (box.type === 'moov') handlers = await trackHandlers(bytes, box)
    if (box.type === 'mdat' && box.content < Math.min(box.end, bytes.size)) hasData = true
    if (handlers !== undefined && hasData) break
  }
  if (handlers === undefined || !hasData) throw undecodable('the MP4 file is incomplete')
  if (!handlers.has('soun')) throw undecodable('the MP4 file has no audio track')
  const isM4a = AUDIO_BRANDS.has(brand) || extension === 'm4a'
  const contentType = handlers.has('vide') && !isM4a ? 'video/mp4' : 'audio/mp4'
  return { container: 'mp4', extension: isM4a ? 'm4a' : 'mp4', contentType }
}

async function trackHandlers(bytes: ByteWindow, moov: Box): Promise<ReadonlySet<string>> {
  if (moov.end > bytes.size) throw undecodable('the MP4 file is cut off')
  const handlers = new Set<string>()
  for await (const track of boxes(bytes, moov.content, moov.end)) {
    if (track.type !== 'trak') continue
    for await (const media of boxes(bytes, track.content, track.end)) {
      if (media.type !== 'mdia') continue
      for await (const box of boxes(bytes, media.content, media.end)) {
        // Version, flags and a reserved word come before the handler's type.
        if (box.type === 'hdlr') handlers.add((await bytes.bytes(box.content + 8, 4)).toString('latin1'))
      }
    }
  }
  return handlers
}

async function* boxes(bytes: ByteWindow, start: number, end: number): AsyncGenerator<Box> {
  let position = start
  for (let count = 0; count < MAX_BOXES && position + 8 <= end; count += 1) {
    const header = await bytes.bytes(position, 16)
    if (header.length < 8) return
    const box = boxOf(header, position, end)
    if (box === undefined) return
    yield box
    position = box.end
  }
}

function boxOf(header: Buffer, position: number, end: number): Box | undefined {
  const type = header.toString('latin1', 4, 8)
  const size = header.readUInt32BE(0)
  // Size 0 reaches to the end; size 1 announces a 64-bit size.
  if (size === 0) return { type, content: position + 8, end }
  if (size !== 1) return size < 8 ? undefined : { type, content: position + 8, end: position + size }
  if (header.length < 16) return undefined
  const large = Number(header.readBigUInt64BE(8))
  return large < 16 ? undefined : { type, content: position + 16, end: position + large }
}
