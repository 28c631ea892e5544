import { isRecord } from '../../../core/validation-rules.js'
import type { ModelFacts } from '../../model-facts.js'
import type { Verdicts } from '../../verdicts.js'
import {
  BREAKPOINT_MEMBERS,
  dropUnknown,
  isAbsent,
  isEmpty,
  listAt,
  type Members,
  missingAt,
  objectAt,
  optionalTextAt,
  textAt,
} from '../members.js'

interface PartPlace {
  /** As the caller writes it. */
  readonly path: string
  /** Whether the caller wants the prompt cache to be cut behind it. */
  readonly isBreakpoint: boolean
}

export interface TextPart extends PartPlace {
  readonly kind: 'text' | 'refusal'
  readonly text: string
}

export interface ImagePart extends PartPlace {
  readonly kind: 'image'
  /** Of the web, or with the data. */
  readonly url: string
  readonly detail: string | undefined
}

export interface FilePart extends PartPlace {
  readonly kind: 'file'
  /** A URL with the data. */
  readonly data: string | undefined
  /** Of the web; only where there is no data. */
  readonly url: string | undefined
  readonly filename: string | undefined
}

export type Part = TextPart | ImagePart | FilePart

/** What the parts of a message depend on. */
export interface PartReading {
  readonly facts: Pick<ModelFacts, 'vision' | 'files'>
  readonly verdicts: Verdicts
}

type PartReader = (part: Members, place: PartPlace, reading: PartReading) => Part

const KNOWN: Readonly<Record<string, ReadonlySet<string>>> = {
  input_text: new Set(['type', 'text', 'prompt_cache_breakpoint']),
  input_image: new Set(['type', 'image_url', 'file_id', 'detail', 'prompt_cache_breakpoint']),
  input_file: new Set(['type', 'file_data', 'file_id', 'file_url', 'filename', 'detail', 'prompt_cache_breakpoint']),
  output_text: new Set(['type', 'text', 'annotations', 'logprobs']),
  refusal: new Set(['type', 'refusal']),
}

const readText: PartReader = ({ text }, place) => ({ ...place, kind: 'text', text: textAt(text, `${place.path}.text`) })

const READERS: Readonly<Record<string, PartReader>> = {
  input_text: readText,
  output_text: (part, place, reading) => {
    // Where sources stood in an earlier answer, and how likely it was, means nothing to a model.
    for (const name of ['annotations', 'logprobs']) {
      if (!isEmpty(part[name])) reading.verdicts.drop(`${place.path}.${name}`)
    }
    return readText(part, place, reading)
  },
  refusal: ({ refusal }, place) => ({ ...place, kind: 'refusal', text: textAt(refusal, `${place.path}.refusal`) }),
  input_image: ({ image_url: url, file_id: id, detail }, place, { facts, verdicts }) => {
    const { path } = place
    if (!facts.vision) verdicts.refuse(`${path}.type`, 'The model sees no images: send text.')
    if (!isAbsent(id)) verdicts.refuse(`${path}.file_id`, 'Send the image itself, or its URL, as image_url.')
    return {
      ...place,
      kind: 'image',
      url: textAt(url, `${path}.image_url`),
      detail: optionalTextAt(detail, `${path}.detail`),
    }
  },
  input_file: (part, place, { facts, verdicts }) => {
    const { path } = place
    const { file_id: id, detail } = part
    if (!facts.files) verdicts.refuse(`${path}.type`, 'The model reads no files: send text.')
    if (!isAbsent(id)) verdicts.refuse(`${path}.file_id`, 'Send the file itself as file_data.')
    if (!isAbsent(detail) && detail !== 'auto') verdicts.drop(`${path}.detail`)
    const data = optionalTextAt(part['file_data'], `${path}.file_data`)
    const url = data === undefined ? optionalTextAt(part['file_url'], `${path}.file_url`) : undefined
    if (data === undefined && url === undefined) throw missingAt(`${path}.file_data`)
    return { ...place, kind: 'file', data, url, filename: optionalTextAt(part['filename'], `${path}.filename`) }
  },
}

/** Types of parts by whose words they are; what a tool returned may hold what a user says. */
const TYPES = {
  user: new Set(['input_text', 'input_image', 'input_file']),
  assistant: new Set(['output_text', 'refusal', 'input_text']),
  instructions: new Set(['input_text']),
} as const satisfies Readonly<Record<string, ReadonlySet<string>>>

type Speaker = keyof typeof TYPES

/** Reads content, a string or parts. Throws `invalid_request`, also for parts that no other dialect has. */
export function readParts(content: unknown, path: string, speaker: Speaker, reading: PartReading): readonly Part[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content, path, isBreakpoint: false }]
  return listAt(content, path).map((part, index) => readPart(part, `${path}[${index}]`, speaker, reading))
}

function readPart(value: unknown, path: string, speaker: Speaker, reading: PartReading): Part {
  const part = objectAt(value, path)
  const type = textAt(part['type'], `${path}.type`)
  const reader = TYPES[speaker].has(type) ? READERS[type] : undefined
  const known = KNOWN[type]
  if (reader === undefined || known === undefined) {
    return reading.verdicts.refuse(`${path}.type`, `Send one of ${[...TYPES[speaker]].join(', ')} here.`)
  }
  dropUnknown(part, known, path, reading.verdicts)
  return reader(part, { path, isBreakpoint: isMarked(part, known, path, reading) }, reading)
}

function isMarked(part: Members, known: ReadonlySet<string>, path: string, { verdicts }: PartReading): boolean {
  const mark = part['prompt_cache_breakpoint']
  if (isAbsent(mark) || !known.has('prompt_cache_breakpoint')) return false
  const markPath = `${path}.prompt_cache_breakpoint`
  if (isRecord(mark) && mark['mode'] === 'explicit') {
    dropUnknown(mark, BREAKPOINT_MEMBERS, markPath, verdicts)
    return true
  }
  verdicts.drop(markPath)
  return false
}
