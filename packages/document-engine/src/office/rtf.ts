import { readTree } from '../html/html-parser.js'
import { collapseSpaces } from '../markdown/escape-markdown.js'
import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import {
  EngineFault,
  type EngineInput,
  type EngineLimits,
  type EngineOutput,
  type EngineWarning,
  NO_METADATA,
} from '../model/document.js'
import { noteReference, restoreFootnotes, withoutMarks } from '../markdown/footnote-marks.js'
import { FIXED_PITCH } from './fixed-pitch.js'
import { lacking } from './office-package.js'
import { decodeText } from '../text/charset.js'
import { escapeHtml } from '../text/escape-html.js'
import { type ParagraphFormat, PLAIN_PARAGRAPH, RtfBlocks } from './rtf-blocks.js'
import {
  CHARACTERS,
  charsetOfCodePage,
  FONT_CHARSETS,
  READ_OPTIONAL_GROUPS,
  type RtfToken,
  rtfTokens,
  SKIPPED_GROUPS,
} from './rtf-controls.js'

/**
 * A document in the Rich Text Format (RTF 1.9.1): paragraphs, headings, lists, tables, emphasis, links and notes. Headers,
 * footers, comments and what was deleted are left out.
 *
 * @throws EngineFault `too_large`
 */
export function readRtf(input: EngineInput, _limits: EngineLimits): EngineOutput {
  const reader = new RtfReader()
  const { bytes } = input
  for (const token of rtfTokens(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')))
    reader.read(token)
  const html = reader.finish()
  const information = (name: string): string =>
    collapseSpaces(reader.information.get(name) ?? '')
      .trim()
      .slice(0, 2048)
  const warnings: EngineWarning[] = [
    ...lacking('pictures_dropped', reader.pictures, 'picture has no description', 'pictures have no description'),
    ...lacking('equations_unread', reader.equations, 'equation is not read', 'equations are not read'),
    ...lacking('attachments_unread', reader.objects, 'embedded object is not read', 'embedded objects are not read'),
  ]
  return {
    kind: 'rtf',
    metadata: {
      ...NO_METADATA,
      title: information('title'),
      description: information('doccomm') || information('subject'),
      keywords: information('keywords'),
      warnings,
    },
    html: '',
    markdown: restoreFootnotes(htmlToMarkdown(readTree(html).body, { baseUrl: '' })),
    pages: 1,
  }
}

/** Most groups within one another. */
const DEEPEST = 10_000

/** Where the text of a group goes. */
type Destination = 'text' | 'skip' | 'fonts' | 'styles' | 'marker' | 'instruction' | 'information'

interface Group {
  readonly destination: Destination
  readonly name: string
  readonly isBold: boolean
  readonly isItalic: boolean
  readonly isStruck: boolean
  readonly isHidden: boolean
  readonly script: '' | 'sup' | 'sub'
  readonly font: number
  /** Characters that stand behind a Unicode character for old readers. */
  readonly fallback: number
  readonly closing: string
}

const PLAIN = { isBold: false, isItalic: false, isStruck: false, isHidden: false, script: '' } as const
const FIRST_GROUP: Group = { ...PLAIN, destination: 'text', name: '', font: -1, fallback: 1, closing: '' }

class RtfReader {
  readonly information = new Map<string, string>()
  pictures = 0
  objects = 0
  equations = 0
  private readonly blocks = new RtfBlocks()
  private readonly groups: Group[] = []
  private group = FIRST_GROUP
  private paragraph: ParagraphFormat = PLAIN_PARAGRAPH
  private readonly fonts = new Map<number, { charset: string | undefined; isFixedPitch: boolean }>()
  private readonly headings = new Map<number, number>()
  private charset = 'windows-1252'
  private defaultFont = 0
  /** Style or font that is being defined. */
  private defined = 0
  private definedName = ''
  private pending: number[] = []
  private unicode = ''
  private skippedCharacters = 0
  private isOptional = false
  private isGroupStart = false
  private content: string[] = []
  /** Content around a note. */
  private outer: string[][] = []
  private characters = 0
  private codeCharacters = 0
  private marker = ''
  private instruction = ''

  read(token: RtfToken): void {
    const isStart = this.isGroupStart
    this.isGroupStart = false
    if (token.kind === 'open') this.open()
    else if (token.kind === 'close') this.close()
    else if (token.kind === 'text') this.addText(token.text)
    else if (token.kind === 'byte') this.addByte(token.value ?? 0)
    else this.control(token.text, token.value, isStart)
  }

  finish(): string {
    while (this.groups.length > 0) this.close()
    this.endParagraph()
    return this.blocks.finish()
  }

  private open(): void {
    if (this.groups.length >= DEEPEST) throw new EngineFault('too_large', 'The file is nested too deeply.')
    this.flush()
    this.groups.push(this.group)
    this.group = { ...this.group, name: '', closing: '' }
    this.isGroupStart = true
    this.skippedCharacters = 0
  }

  private close(): void {
    this.flush()
    const closed = this.group
    if (closed.closing !== '') this.content.push(closed.closing)
    if (closed.destination === 'fonts' || closed.destination === 'styles') this.define()
    if (closed.name === 'footnote') this.endNote()
    this.group = this.groups.pop() ?? FIRST_GROUP
    this.skippedCharacters = 0
  }

  private control(name: string, value: number | undefined, isStart: boolean): void {
    if (name === '*') {
      this.isOptional = true
      this.isGroupStart = isStart
      return
    }
    const isOptional = this.isOptional
    this.isOptional = false
    if (isStart || isOptional) this.openDestination(name, isOptional)
    if (this.group.destination === 'skip') return
    const character = CHARACTERS.get(name)
    if (name === 'u' && value !== undefined) this.addUnicode(value)
    else if (character !== undefined) this.addCharacters(character)
    else {
      this.flush()
      this.readControl(name, value)
    }
  }

  /** The first control word of a group may say what the group is. */
  private openDestination(name: string, isOptional: boolean): void {
    const become = (destination: Destination): void => {
      this.group = { ...this.group, destination, name }
    }
    if (this.group.destination === 'skip') return
    if (name === 'pict') this.pictures += 1
    else if (name === 'objdata') this.objects += 1
    else if (name === 'mmath') this.equations += 1
    if (name === 'pict' || name === 'mmath' || SKIPPED_GROUPS.has(name)) become('skip')
    else if (name === 'fonttbl') become('fonts')
    else if (name === 'stylesheet') become('styles')
    else if (name === 'info') become('information')
    else if (this.group.destination === 'information') become('information')
    else if (name === 'listtext' || name === 'pntext') {
      this.marker = ''
      become('marker')
    } else if (name === 'fldinst') {
      this.instruction = ''
      become('instruction')
    } else if (name === 'fldrslt') this.openLink()
    else if (name === 'footnote') {
      become('text')
      this.outer.push(this.content)
      this.content = []
    } else if (isOptional && !READ_OPTIONAL_GROUPS.has(name) && this.group.destination !== 'styles') become('skip')
  }

  private openLink(): void {
    const url = /^\s*HYPERLINK\s+(?:"([^"]*)"|(\S+))/i.exec(this.instruction)
    this.instruction = ''
    const address = url?.[1] ?? url?.[2] ?? ''
    if (!/^(?:https?|mailto|ftp):/i.test(address)) return
    this.content.push(`<a href="${escapeHtml(address)}">`)
    this.group = { ...this.group, closing: '</a>' }
  }

  private readControl(name: string, value: number | undefined): void {
    const isOn = value !== 0
    switch (name) {
      case 'b':
        this.group = { ...this.group, isBold: isOn }
        return
      case 'i':
        this.group = { ...this.group, isItalic: isOn }
        return
      case 'strike':
      case 'striked':
        this.group = { ...this.group, isStruck: isOn }
        return
      case 'v':
      case 'deleted':
        this.group = { ...this.group, isHidden: isOn }
        return
      case 'super':
      case 'sub':
        this.group = { ...this.group, script: isOn ? (name === 'super' ? 'sup' : 'sub') : '' }
        return
      case 'nosupersub':
        this.group = { ...this.group, script: '' }
        return
      case 'plain':
        this.group = { ...this.group, ...PLAIN, font: -1 }
        return
      case 'uc':
        this.group = { ...this.group, fallback: Math.min(16, Math.max(0, value ?? 1)) }
        return
      case 'f':
        this.setFont(value ?? 0)
        return
      default:
        this.readDefinition(name, value ?? 0)
    }
  }

  private setFont(font: number): void {
    if (this.group.destination === 'fonts') {
      this.defined = font
      this.fonts.set(font, { charset: undefined, isFixedPitch: false })
    } else this.group = { ...this.group, font }
  }

  private readDefinition(name: string, value: number): void {
    if (name === 'fcharset') {
      const font = this.fonts.get(this.defined)
      if (font !== undefined) font.charset = FONT_CHARSETS.get(value)
    } else if (name === 'ansicpg') this.charset = charsetOfCodePage(value)
    else if (name === 'mac') this.charset = 'macintosh'
    else if (name === 'pc' || name === 'pca') this.charset = name === 'pc' ? 'cp437' : 'cp850'
    else if (name === 'deff') this.defaultFont = value
    else if (name === 's' && this.group.destination === 'styles') this.defined = value
    else this.readParagraphControl(name, value)
  }

  private readParagraphControl(name: string, value: number): void {
    if (this.group.destination !== 'text') return
    const { paragraph } = this
    if (name === 'par' || name === 'sect' || name === 'page') this.endParagraph()
    else if (name === 'line' || name === 'lbr') this.content.push('<br>')
    else if (name === 'pard') {
      this.paragraph = PLAIN_PARAGRAPH
    } else if (name === 'intbl') this.paragraph = { ...paragraph, isInTable: true }
    else if (name === 's') this.paragraph = { ...paragraph, heading: this.headings.get(value) ?? 0 }
    else if (name === 'outlinelevel') this.paragraph = { ...paragraph, heading: value <= 5 ? value + 1 : 0 }
    else if (name === 'ls')
      this.paragraph = { ...paragraph, listLevel: value === 0 ? undefined : (paragraph.listLevel ?? 0) }
    else if (name === 'li') this.paragraph = { ...paragraph, indent: value }
    else if (name === 'fi') this.paragraph = { ...paragraph, firstIndent: value }
    else if (name === 'ilvl') this.paragraph = { ...paragraph, listLevel: value }
    else if (name === 'cell' || name === 'nestcell') this.endCell(name === 'cell')
    else if (name === 'row') this.blocks.endRow()
    else if (name === 'chftn') return
  }

  private endCell(isOuter: boolean): void {
    this.paragraph = { ...this.paragraph, isInTable: true }
    this.endParagraph()
    if (isOuter) this.blocks.endCell()
  }

  private define(): void {
    const name = this.definedName.replace(/;.*$/s, '').trim()
    this.definedName = ''
    if (name === '') return
    if (this.group.destination === 'styles') {
      const level = /^title$/i.test(name) ? 1 : /^(?:heading|überschrift|titre|título) ?([1-6])$/i.exec(name)?.[1]
      if (level !== undefined) this.headings.set(this.defined, Number(level))
    } else {
      const font = this.fonts.get(this.defined)
      if (font !== undefined) font.isFixedPitch = FIXED_PITCH.test(name)
    }
  }

  private addText(text: string): void {
    const { destination } = this.group
    if (destination === 'skip') return
    const skipped = Math.min(this.skippedCharacters, text.length)
    this.skippedCharacters -= skipped
    if (this.unicode !== '' && skipped < text.length) this.flush()
    for (let index = skipped; index < text.length; index += 1) this.pending.push(text.charCodeAt(index))
    // Fonts are divided by semicolons where they have no groups of their own.
    if (destination === 'fonts' && text.includes(';')) {
      this.flush()
      this.define()
    }
  }

  private addByte(byte: number): void {
    if (this.group.destination === 'skip') return
    if (this.skippedCharacters > 0) {
      this.skippedCharacters -= 1
      return
    }
    if (this.unicode !== '') this.flush()
    this.pending.push(byte)
  }

  private addUnicode(value: number): void {
    if (this.pending.length > 0) this.flush()
    this.unicode += String.fromCharCode(value < 0 ? value + 65_536 : value)
    this.skippedCharacters = this.group.fallback
  }

  private addCharacters(characters: string): void {
    if (this.skippedCharacters > 0) {
      this.skippedCharacters -= 1
      return
    }
    if (this.pending.length > 0) this.flush()
    this.unicode += characters
  }

  /** Decodes the bytes since the last change of format. */
  private flush(): void {
    if (this.pending.length === 0 && this.unicode === '') return
    const { group } = this
    const font = this.fonts.get(group.font === -1 ? this.defaultFont : group.font)
    const charset = font?.charset ?? this.charset
    const bytes =
      this.pending.length === 0 ? '' : decodeText(Uint8Array.from(this.pending), `text/plain; charset=${charset}`)
    const text = withoutMarks(bytes + this.unicode).replaceAll('\0', '')
    this.pending = []
    this.unicode = ''
    switch (group.destination) {
      case 'fonts':
      case 'styles':
        this.definedName += text
        return
      case 'marker':
        this.marker += text
        return
      case 'instruction':
        this.instruction += text
        return
      case 'information':
        this.information.set(group.name, (this.information.get(group.name) ?? '') + text)
        return
      case 'skip':
        return
      case 'text':
        if (!group.isHidden) this.addRun(text, font?.isFixedPitch === true)
    }
  }

  private addRun(text: string, isFixedPitch: boolean): void {
    const { isBold, isItalic, isStruck, script } = this.group
    const isTypewritten = this.fonts.get(this.defaultFont)?.isFixedPitch === true
    const characters = text.replaceAll(/\s/g, '').length
    this.characters += characters
    if (isFixedPitch && !isTypewritten) this.codeCharacters += characters
    const html = escapeHtml(text)
    const tags = [script, isStruck ? 's' : '', isItalic ? 'em' : '', isBold ? 'strong' : '']
    if (isFixedPitch && !isTypewritten) tags.push('code')
    this.content.push(tags.filter((tag) => tag !== '').reduce((inner, tag) => `<${tag}>${inner}</${tag}>`, html))
  }

  private endParagraph(): void {
    this.flush()
    if (this.outer.length > 0) {
      this.content.push(' ')
      return
    }
    const isCode = !this.paragraph.isInTable && this.characters > 0 && this.codeCharacters === this.characters
    const written = this.content.join('')
    const typed = this.typedMarker(written)
    if (typed !== '') this.marker = typed.replaceAll(/<[^<>]*>/g, '')
    const content = written.slice(typed.length)
    const plain = isCode ? content.replaceAll(/<\/?(?:code|strong|em)>/g, '') : content
    this.blocks.addParagraph(plain, this.paragraph, this.marker, isCode)
    this.content = []
    this.marker = ''
    this.characters = 0
    this.codeCharacters = 0
  }

  /** A bullet or number that was typed in front of a first line that hangs; '' without one. */
  private typedMarker(content: string): string {
    if (this.marker !== '' || this.paragraph.firstIndent >= 0) return ''
    return /^(?:[•·▪◦‣–o-]|\(?\d{1,6}[.)]|\(?[a-z]{1,5}[.)])[\t ]*\t/i.exec(content)?.[0] ?? ''
  }

  private endNote(): void {
    const content = this.content.join('')
    this.content = this.outer.pop() ?? []
    if (content.trim() !== '') this.content.push(noteReference(this.blocks.addNote(content)))
  }
}
