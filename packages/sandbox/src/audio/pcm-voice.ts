/** Samples per second of everything the synthesizer says. */
export const SAMPLE_RATE = 24_000

/** Number of different syllables, each with its own pitch and vowel. */
export const VOICE_COUNT = 8

/** Samples of one syllable's sound: 125 ms, which every codec fits into 200 to 216 ms together with its overlap. */
export const SYLLABLE_SAMPLES = 3000

/** Samples of one PCM or FLAC frame: 20 ms. */
export const PCM_FRAME_SAMPLES = 480

const PCM_FRAMES_PER_SYLLABLE = 10
const LOWEST_PITCH_HZ = 110
const OCTAVES_BETWEEN_VOICES = 1 / 7
/** The pitch falls over the syllable by this share, as spoken syllables do. */
const PITCH_FALL = 0.08
const HIGHEST_HARMONIC_HZ = 4000
const FORMANT_BANDWIDTH_HZ = 110
/** About -4.4 dBFS: well audible, with head room for the overshoot of lossy codecs. */
const PEAK_LEVEL = 0.6 * 32_767
const ATTACK_SAMPLES = 480
const DECAY_SAMPLES = 1200

/** The two lowest resonances (Hz) of the vowels of "father", "met", "see", "law", "boot", "cut", "bird" and "cat". */
const VOWEL_FORMANTS_HZ: readonly (readonly [number, number])[] = [
  [730, 1090],
  [530, 1840],
  [270, 2290],
  [570, 840],
  [300, 870],
  [640, 1190],
  [490, 1350],
  [660, 1720],
]

/**
 * The sound of one syllable: a vowel of 125 ms that rises from silence and falls back to it, as signed 16-bit samples
 * at 24 kHz. Voices count from 0 to 7, from 110 Hz to 220 Hz.
 */
export function renderSyllable(voice: number): Int16Array {
  const wave = new Float64Array(SYLLABLE_SAMPLES)
  const pitchHz = LOWEST_PITCH_HZ * 2 ** (voice * OCTAVES_BETWEEN_VOICES)
  for (let harmonic = 1; harmonic * pitchHz <= HIGHEST_HARMONIC_HZ; harmonic += 1) {
    addHarmonic(wave, harmonic, pitchHz, vowelGain(harmonic * pitchHz, voice))
  }
  const shaped = wave.map((sample, index) => sample * envelope(index))
  const peak = shaped.reduce((highest, sample) => Math.max(highest, Math.abs(sample)), 0)
  return Int16Array.from(shaped, (sample) => Math.round((sample / peak) * PEAK_LEVEL))
}

/** All syllables cut into frames of 480 samples (20 ms), ten each: 20 ms silence, the sound, 55 ms silence. */
export function renderPcmFrames(): { silence: Int16Array; syllables: Int16Array[][] } {
  const syllables = Array.from({ length: VOICE_COUNT }, (_, voice) => {
    const slot = new Int16Array(PCM_FRAMES_PER_SYLLABLE * PCM_FRAME_SAMPLES)
    slot.set(renderSyllable(voice), PCM_FRAME_SAMPLES)
    return Array.from({ length: PCM_FRAMES_PER_SYLLABLE }, (_, frame) =>
      slot.slice(frame * PCM_FRAME_SAMPLES, (frame + 1) * PCM_FRAME_SAMPLES),
    )
  })
  return { silence: new Int16Array(PCM_FRAME_SAMPLES), syllables }
}

/** Samples as the bytes of raw PCM: signed 16-bit little-endian. */
export function toPcmBytes(samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(samples.length * 2)
  samples.forEach((sample, index) => bytes.writeInt16LE(sample, index * 2))
  return bytes
}

function addHarmonic(wave: Float64Array, harmonic: number, pitchHz: number, gain: number): void {
  let phase = 0
  for (let index = 0; index < wave.length; index += 1) {
    wave[index] = (wave[index] ?? 0) + gain * Math.sin(phase)
    const fallingPitchHz = pitchHz * (1 - (PITCH_FALL * index) / wave.length)
    phase += (2 * Math.PI * harmonic * fallingPitchHz) / SAMPLE_RATE
  }
}

/** Loudness of a partial: the glottis gives about 1/f, each formant lifts what lies near it. */
function vowelGain(frequencyHz: number, voice: number): number {
  const formants = VOWEL_FORMANTS_HZ[voice % VOWEL_FORMANTS_HZ.length] ?? []
  const resonance = formants.reduce(
    (sum, formantHz) => sum + 1 / (1 + ((frequencyHz - formantHz) / FORMANT_BANDWIDTH_HZ) ** 2),
    0.05,
  )
  return resonance / Math.sqrt(frequencyHz)
}

function envelope(index: number): number {
  const fade = Math.min(1, index / ATTACK_SAMPLES, (SYLLABLE_SAMPLES - 1 - index) / DECAY_SAMPLES)
  return (1 - Math.cos(Math.PI * fade)) / 2
}
