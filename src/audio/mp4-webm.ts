import { notAudio, undecodable, type AudioFacts } from './audio-facts.js'
import type { ByteWindow } from './byte-window.js'
import { ElementBudget } from './element-budget.js'

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
  while (position < Math.min(end, bytes.size) && budget.spend()) {
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
