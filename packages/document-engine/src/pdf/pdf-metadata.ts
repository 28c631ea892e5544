import { type EngineMetadata, NO_METADATA } from '../model/document.js'

const MAX_LENGTH = 2048
/** Shorter halves may be a word such as "bonbon". */
const MIN_REPEATED = 4
const LONE_SURROGATE = /\p{Cs}$/u
const UNREADABLE = /[\p{Cc}\p{Co}\p{Cs}\uFEFF\uFFFD]+/gu
/** Titles that a program made of the name of its file, or put there because nobody gave one. */
const ACCIDENTAL_TITLES = [
  /^microsoft (?:office )?(?:word|powerpoint|excel|publisher|visio)\b/i,
  /^(?:untitled|unbenannt|sans titre|sin título|senza titolo|无标题|未命名|無題)[\s\d-]*$/iu,
  /^(?:document|presentation|powerpoint presentation|slide|title|no title|book|doc)\s*\d*$/i,
  /^\S*\.(?:docx?|pdf|pptx?|xlsx?|rtf|odt|odp|tex|dvi|e?ps|indd|qxd|pmd|fm|p65|html?|txt|md|cdr|ai|wpd)$/i,
  /\.(?:docx?|pptx?|xlsx?|dvi|indd|qxd|fm)$/i,
]

/** Both as pdf.js gives them: the document information dictionary, and XMP where there is any. */
interface MetadataSources {
  readonly info: unknown
  readonly xmp: { get(name: string): unknown } | null
}

/** Title, description (the subject) and keywords; XMP where the dictionary says nothing of use. */
export function pdfMetadata({ info, xmp }: MetadataSources): EngineMetadata {
  const said = (name: string) => textOf(typeof info === 'object' && info !== null ? Reflect.get(info, name) : '')
  const xmpSaid = (name: string) => textOf(xmp?.get(name))
  return {
    ...NO_METADATA,
    title:
      [said('Title'), withoutRepeat(xmpSaid('dc:title'))].find((title) => title !== '' && !isAccidental(title)) ?? '',
    description: said('Subject') || withoutRepeat(xmpSaid('dc:description')),
    keywords: said('Keywords') || xmpSaid('pdf:keywords') || xmpSaid('dc:subject'),
  }
}

function isAccidental(title: string): boolean {
  return ACCIDENTAL_TITLES.some((pattern) => pattern.test(title))
}

/** pdf.js joins the languages of XMP's alternatives; often two say the same. */
function withoutRepeat(text: string): string {
  const half = text.slice(0, text.length / 2)
  return half.length >= MIN_REPEATED && half + half === text ? half : text
}

/** XMP has lists, of languages or of words. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return cleanText(value.filter((part) => typeof part === 'string').join(', '), MAX_LENGTH)
  return typeof value === 'string' ? cleanText(value, MAX_LENGTH) : ''
}

/** One line, at most so many characters, without characters that mean nothing. */
export function cleanText(text: string, maxLength: number): string {
  const oneLine = text
    .slice(0, 4 * maxLength)
    .replace(/\s+/gu, ' ')
    .replace(UNREADABLE, '')
    .trim()
  return oneLine.length <= maxLength ? oneLine : `${oneLine.slice(0, maxLength - 1).replace(LONE_SURROGATE, '')}…`
}
