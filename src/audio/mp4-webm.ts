import { type AudioFacts, type ByteWindow, notAudio, undecodable } from './audio-facts.js'

const MAX_ELEMENTS = 4096

/** How many boxes or elements of one file are looked at, on all its levels together: nesting must not multiply them. */
class ElementBudget {
  #left = MAX_ELEMENTS

  /** False when nothing is left: what follows counts as unreadable. */
  consume(): boolean {
    if (this.#left === 0) return false
    this.#left -= 1
    return true
  }
}

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
  while (position + 8 <= end && budget.consume()) {
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

const ID = {
  ebml: 0x1a45dfa3,
  docType: 0x4282,
  segment: 0x18538067,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackType: 0x83,
  cluster: 0x1f43b675,
}
const BLOCKS: ReadonlySet<number> = new Set([0xa3, 0xa0])
const AUDIO_TRACK = 2

interface Element {
  readonly id: number
  readonly content: number
  /** Never beyond its parent's, which it is when a live writer did not know the size. */
  readonly end: number
}

interface ElementFile {
  readonly bytes: ByteWindow
  readonly budget: ElementBudget
}

/** Looks for an audio track and for a block of media. */
export async function inspectWebm(bytes: ByteWindow, extension: string): Promise<AudioFacts> {
  const file = { bytes, budget: new ElementBudget() }
  const docType = await readDocType(file)
  // Some recorders write the general type into files they call WebM.
  if (docType !== 'webm' && !(docType === 'matroska' && extension === 'webm')) throw notAudio()
  let hasAudio: boolean | undefined
  for await (const top of elements(file, 0, bytes.size)) {
    if (top.id !== ID.segment) continue
    for await (const element of elements(file, top.content, top.end)) {
      if (element.id === ID.tracks) hasAudio = await hasAudioTrack(file, element)
      if (hasAudio === false) throw undecodable('the WebM file has no audio track')
      if (hasAudio && element.id === ID.cluster && (await hasBlock(file, element))) {
        return { container: 'webm', extension: 'webm', contentType: 'audio/webm' }
      }
    }
  }
  throw undecodable('the WebM file holds no media')
}

async function readDocType(file: ElementFile): Promise<string | undefined> {
  for await (const top of elements(file, 0, file.bytes.size)) {
    if (top.id !== ID.ebml) return undefined
    for await (const { id, content, end } of elements(file, top.content, top.end)) {
      if (id === ID.docType) return (await file.bytes.bytes(content, Math.min(end - content, 16))).toString('latin1')
    }
  }
  return undefined
}

async function hasAudioTrack(file: ElementFile, tracks: Element): Promise<boolean> {
  for await (const entry of elements(file, tracks.content, tracks.end)) {
    if (entry.id !== ID.trackEntry) continue
    for await (const { id, content, end } of elements(file, entry.content, entry.end)) {
      if (id === ID.trackType && (await file.bytes.bytes(end - 1, 1))[0] === AUDIO_TRACK && end > content) return true
    }
  }
  return false
}

async function hasBlock(file: ElementFile, cluster: Element): Promise<boolean> {
  for await (const { id, content } of elements(file, cluster.content, cluster.end)) {
    if (BLOCKS.has(id)) return content < file.bytes.size
  }
  return false
}

async function* elements({ bytes, budget }: ElementFile, start: number, end: number): AsyncGenerator<Element> {
  let position = start
  while (position < Math.min(end, bytes.size) && budget.consume()) {
    const header = await bytes.bytes(position, 12)
    const id = vint(header, 0, 4)
    const size = id && vint(header, id.length, 8)
    if (id === undefined || size === undefined) return
    const content = position + id.length + size.length
    const claimedEnd = size.isUnknown ? end : content + size.value
    const element = { id: id.raw, content, end: Math.min(claimedEnd, end) }
    yield element
    position = element.end
  }
}

interface Vint {
  readonly length: number
  /** With its marker bit, as identifiers are written. */
  readonly raw: number
  /** Without it, as sizes are. */
  readonly value: number
  /** Every bit set: a size that was not known. */
  readonly isUnknown: boolean
}

/** A number whose length is the place of its first set bit. The value is exact up to 2^53, more than any file has. */
function vint(header: Buffer, offset: number, maxLength: number): Vint | undefined {
  const first = header[offset] ?? 0
  const length = Math.clz32(first) - 23
  if (length > maxLength || offset + length > header.length) return undefined
  const mask = 0xff >> length
  const rest = header.subarray(offset + 1, offset + length)
  const join = (start: number): number => rest.reduce((sum, byte) => sum * 256 + byte, start)
  const isUnknown = (first & mask) === mask && rest.every((byte) => byte === 0xff)
  return { length, raw: join(first), value: join(first & mask), isUnknown }
}
