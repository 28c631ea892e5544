import { notAudio, undecodable, type AudioFacts } from './audio-facts.js'
import type { ByteWindow } from './byte-window.js'
import { ElementBudget } from './element-budget.js'

const PICTURE_BRANDS: ReadonlySet<string> = new Set(['avif', 'avis', 'heic', 'heix', 'mif1', 'msf1', 'crx '])
const AUDIO_BRANDS: ReadonlySet<string> = new Set(['M4A ', 'M4B ', 'M4P '])

interface Box {
  readonly type: string
  readonly content: number
  /** Never beyond its parent's. */
  readonly end: number
  /** It claims more than its parent holds, as in an upload that was cut. */
  readonly isCut: boolean
}

interface BoxFile {
  readonly bytes: ByteWindow
  readonly budget: ElementBudget
}

export function isMp4(head: Buffer): boolean {
  return head.toString('latin1', 4, 8) === 'ftyp'
}

/** Looks for a sound track and for media data; the track list may come after the data. */
export async function inspectMp4(bytes: ByteWindow, extension: string): Promise<AudioFacts> {
  const brand = (await bytes.bytes(8, 4)).toString('latin1')
  if (PICTURE_BRANDS.has(brand)) throw notAudio()
  const file = { bytes, budget: new ElementBudget() }
  let handlers: ReadonlySet<string> | undefined
  let hasData = false
  for await (const box of boxes(file, 0, bytes.size)) {
    if (box.type === 'moov') handlers = await trackHandlers(file, box)
    if (box.type === 'mdat' && box.content < box.end) hasData = true
    if (handlers !== undefined && hasData) break
  }
  if (handlers === undefined || !hasData) throw undecodable('the MP4 file is incomplete')
  if (!handlers.has('soun')) throw undecodable('the MP4 file has no audio track')
  const isM4a = AUDIO_BRANDS.has(brand) || extension === 'm4a'
  const contentType = handlers.has('vide') && !isM4a ? 'video/mp4' : 'audio/mp4'
  return { container: 'mp4', extension: isM4a ? 'm4a' : 'mp4', contentType }
}

async function trackHandlers(file: BoxFile, moov: Box): Promise<ReadonlySet<string>> {
  if (moov.isCut) throw undecodable('the MP4 file is cut off')
  const handlers = new Set<string>()
  for await (const track of boxes(file, moov.content, moov.end)) {
    if (track.type !== 'trak') continue
    for await (const media of boxes(file, track.content, track.end)) {
      if (media.type !== 'mdia') continue
      for await (const box of boxes(file, media.content, media.end)) {
        // Version, flags and a reserved word come before the handler's type.
        if (box.type === 'hdlr') handlers.add((await file.bytes.bytes(box.content + 8, 4)).toString('latin1'))
      }
    }
  }
  return handlers
}

async function* boxes({ bytes, budget }: BoxFile, start: number, end: number): AsyncGenerator<Box> {
  let position = start
  while (position + 8 <= end && budget.spend()) {
    const header = await bytes.bytes(position, 16)
    if (header.length < 8) return
    const box = boxOf(header, position, end)
    if (box === undefined) return
    yield box
    position = box.end
  }
}

function boxOf(header: Buffer, position: number, parentEnd: number): Box | undefined {
  const type = header.toString('latin1', 4, 8)
  const size = header.readUInt32BE(0)
  const boxTo = (content: number, end: number): Box => {
    return { type, content, end: Math.min(end, parentEnd), isCut: end > parentEnd }
  }
  // Size 0 reaches to the end; size 1 announces a 64-bit size.
  if (size === 0) return boxTo(position + 8, parentEnd)
  if (size !== 1) return size < 8 ? undefined : boxTo(position + 8, position + size)
  if (header.length < 16) return undefined
  const large = Number(header.readBigUInt64BE(8))
  return large < 16 ? undefined : boxTo(position + 16, position + large)
}
