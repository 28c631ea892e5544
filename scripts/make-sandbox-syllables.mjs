/**
 * Makes packages/sandbox/src/audio/syllables.table.ts: the sandbox voice's syllables, encoded as MP3, AAC and Opus frames.
 *
 * Run by hand (`node scripts/make-sandbox-syllables.mjs`) after the sound in packages/sandbox/src/audio/pcm-voice.ts has
 * changed. Needs the development dependencies and an ffmpeg with libmp3lame and libopus on the PATH; nothing at run
 * time or in the tests does. Encoders differ a little between versions, so another ffmpeg writes other bytes.
 *
 * How it works: all syllables are encoded in one stream, far apart in silence and at the same place on the frame grid.
 * The frames that differ from the encoder's silent frame are one syllable; they are cut out with silent frames around
 * them, so that any order of syllables and silent frames decodes cleanly. The script stops when a frame would depend
 * on its neighbours (MP3 bit reservoir) or a sound does not fit into its frames.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { formatted } from './format.mjs'

const voiceSource = new URL('../packages/sandbox/src/audio/pcm-voice.ts', import.meta.url)
const tableFile = new URL('../packages/sandbox/src/audio/syllables.table.ts', import.meta.url)

/** Silence before, between and after syllables, in frames: long enough for every encoder to come to rest. */
const GAP_FRAMES = 24

/** `leadSamples` is where on the frame grid the sound begins: found by trial, for the fewest frames per sound. */
const FORMATS = {
  mp3: {
    samplesPerFrame: 576,
    framesPerSyllable: 9,
    leadSamples: 240,
    encoder: '-c:a libmp3lame -b:a 48k -reservoir 0 -write_xing 0 -id3v2_version 0 -f mp3'.split(' '),
    split: splitMp3,
  },
  aac: {
    samplesPerFrame: 1024,
    framesPerSyllable: 5,
    leadSamples: 576,
    encoder: '-c:a aac -profile:a aac_low -b:a 32k -f adts'.split(' '),
    split: splitAdts,
    finishSilence: padAdts,
  },
  opus: {
    samplesPerFrame: 480,
    framesPerSyllable: 10,
    leadSamples: 0,
    // "lowdelay" is pure CELT: its silent frame resets the prediction, which SILK's does not.
    encoder: '-c:a libopus -application lowdelay -frame_duration 20 -vbr on -b:a 32k -f ogg'.split(' '),
    split: splitOgg,
  },
}

const voice = await importTypeScript(voiceSource)
const tables = Object.entries(FORMATS).map(([name, format]) => [name, makeTable(name, format)])
writeFileSync(tableFile, await formatted(fileURLToPath(tableFile), tableSource(tables)))

async function importTypeScript(url) {
  const { outputText } = ts.transpileModule(readFileSync(url, 'utf8'), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  })
  return import(`data:text/javascript;base64,${Buffer.from(outputText).toString('base64')}`)
}

function makeTable(name, format) {
  const spacing = 2 * GAP_FRAMES + format.framesPerSyllable
  const stream = new Int16Array(spacing * format.samplesPerFrame * voice.VOICE_COUNT)
  for (let index = 0; index < voice.VOICE_COUNT; index += 1) {
    const slotStart = (index * spacing + GAP_FRAMES) * format.samplesPerFrame
    stream.set(voice.renderSyllable(index), slotStart + format.leadSamples)
  }
  const frames = format.split(encode(stream, format.encoder))
  const silence = frames[GAP_FRAMES - 4]
  const sounds = findSounds(frames, silence, spacing)
  const first = Math.min(...sounds.map((sound) => sound.first))
  const last = Math.max(...sounds.map((sound) => sound.last))
  const length = last - first + 1
  console.log(
    `${name}: ${length} of ${format.framesPerSyllable} frames are sound, silent frame ${silence.length} bytes`,
  )
  if (length > format.framesPerSyllable) throw new Error(`${name}: a sound takes ${length} frames`)
  const start = first - Math.floor((format.framesPerSyllable - length) / 2)
  const syllables = sounds.map((_, index) => {
    const from = index * spacing + start
    return frames.slice(from, from + format.framesPerSyllable)
  })
  return { silence: format.finishSilence?.(silence) ?? silence, syllables }
}

/** First and last frame of each sound that is not the silent frame, counted from the start of its own slot. */
function findSounds(frames, silence, spacing) {
  return Array.from({ length: voice.VOICE_COUNT }, (_, index) => {
    const slot = frames.slice(index * spacing, (index + 1) * spacing)
    const settled = index === 0 ? 4 : 0
    const first = slot.findIndex((frame, position) => position >= settled && !frame.equals(silence))
    const last = slot.findLastIndex((frame) => !frame.equals(silence))
    if (first < 0 || last === slot.length - 1) throw new Error(`syllable ${index}: no silence around the sound`)
    return { first, last }
  })
}

function encode(samples, encoderArguments) {
  const input = '-hide_banner -loglevel error -f s16le -ar 24000 -ac 1 -i pipe:0 -map_metadata -1 -bitexact'.split(' ')
  const { status, stdout, stderr } = spawnSync('ffmpeg', [...input, ...encoderArguments, 'pipe:1'], {
    input: voice.toPcmBytes(samples),
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) throw new Error(`ffmpeg failed: ${stderr}`)
  return stdout
}

/** MPEG-2 layer III at 48 kbit/s and 24 kHz: every frame has 144 bytes and no padding. */
function splitMp3(bytes) {
  const frames = []
  for (let offset = 0; offset < bytes.length; offset += 144) {
    const frame = bytes.subarray(offset, offset + 144)
    if (frame.length < 144 || frame.readUInt16BE(0) !== 0xfff3) throw new Error(`mp3: no frame at ${offset}`)
    if (frame[4] !== 0) throw new Error(`mp3: the frame at ${offset} uses the bit reservoir`)
    frames.push(frame)
  }
  return frames
}

function splitAdts(bytes) {
  const frames = []
  for (let offset = 0; offset < bytes.length;) {
    if (bytes.readUInt16BE(offset) !== 0xfff1) throw new Error(`aac: no frame at ${offset}`)
    const length = ((bytes[offset + 3] & 3) << 11) | (bytes[offset + 4] << 3) | (bytes[offset + 5] >> 5)
    frames.push(bytes.subarray(offset, offset + length))
    offset += length
  }
  return frames
}

/**
 * Stretches a silent ADTS frame to 192 bytes with a fill element before its end mark (ISO/IEC 14496-3, 4.4.2.7), as an
 * encoder of constant bit rate does: readers that guess a length from the bit rate, or stop when less than a frame can
 * be left, would lose the silence otherwise.
 */
function padAdts(frame) {
  const fillBytes = 192 - 7 - 6
  const bits = [...frame.subarray(7)].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const content = bits.slice(0, 29)
  if (bits.slice(29) !== '111') throw new Error('aac: the silent frame is not the one this script knows')
  const fillHeader = `110${'1111'}${(fillBytes - 14).toString(2).padStart(8, '0')}`
  const filled = `${content}${fillHeader}${'00000000'}${'10100101'.repeat(fillBytes - 1)}111`
  const payload = filled
    .padEnd(8 * (192 - 7), '0')
    .match(/.{8}/g)
    .map((byte) => parseInt(byte, 2))
  const padded = Buffer.from([...frame.subarray(0, 7), ...payload])
  padded[3] = (padded[3] & 0xfc) | (padded.length >> 11)
  padded[4] = (padded.length >> 3) & 0xff
  padded[5] = ((padded.length & 7) << 5) | (padded[5] & 0x1f)
  return padded
}

function splitOgg(bytes) {
  const packets = []
  let parts = []
  for (let offset = 0; offset < bytes.length;) {
    const segments = bytes[offset + 26]
    let position = offset + 27 + segments
    for (const size of bytes.subarray(offset + 27, position)) {
      parts.push(bytes.subarray(position, position + size))
      position += size
      if (size === 255) continue
      packets.push(Buffer.concat(parts))
      parts = []
    }
    offset = position
  }
  return packets.slice(2)
}

function tableSource(entries) {
  const formats = entries.map(([name, { silence, syllables }]) => {
    const lines = syllables.map((frames) => `      '${frames.map((frame) => frame.toString('base64')).join(' ')}',\n`)
    return `  ${name}: {\n    silence: '${silence.toString('base64')}',\n    syllables: [\n${lines.join('')}    ],\n  },\n`
  })
  return `/** Formats whose frames stand ready in the table below. */
export type EncodedFormat = 'mp3' | 'aac' | 'opus'

/** One silent frame, and the frames of every syllable: base64, a space between frames. */
export interface EncodedSyllables {
  readonly silence: string
  readonly syllables: readonly string[]
}

/** Written by scripts/make-sandbox-syllables.mjs, not by hand: the sound of pcm-voice.ts, encoded at 24 kHz mono. */
export const ENCODED_SYLLABLES: Readonly<Record<EncodedFormat, EncodedSyllables>> = {
${formats.join('')}}
`
}
