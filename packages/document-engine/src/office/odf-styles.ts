import { languageTag } from '../model/document.js'
import { FIXED_PITCH } from './fixed-pitch.js'
import { childElements, descendant, type XmlElement } from './xml.js'

/** Character formats that Markdown has. */
export interface CharacterFormat {
  readonly isBold: boolean
  readonly isItalic: boolean
  readonly isStruck: boolean
  readonly isFixedPitch: boolean
  readonly script: '' | 'sup' | 'sub'
}

/** Most styles on the way to the first: hostile ones are circles. */
const LONGEST_CHAIN = 20

/** Styles of an OpenDocument file (ODF 1.3 part 3, 16), of both of its parts. */
export class OdfStyles {
  readonly language: string
  private readonly styles = new Map<string, XmlElement>()
  private readonly lists = new Map<string, ReadonlyMap<number, XmlElement>>()

  constructor(...roots: readonly (XmlElement | undefined)[]) {
    let language = ''
    for (const root of roots)
      for (const group of ['styles', 'automatic-styles'])
        for (const element of childElements(descendant(root, group))) {
          const name = element.attributes['style:name'] ?? ''
          if (element.name === 'style') this.styles.set(`${element.attributes['style:family'] ?? ''} ${name}`, element)
          else if (element.name === 'list-style') this.lists.set(name, levelsOf(element))
          else if (element.name === 'default-style' && element.attributes['style:family'] === 'paragraph')
            language ||= languageIn(element)
        }
    this.language = language
  }

  /** Names of a paragraph's style and of those that it is based on. */
  namesOf(family: string, name: string | undefined): string[] {
    const names: string[] = []
    let next = name
    while (next !== undefined && next !== '' && names.length < LONGEST_CHAIN) {
      names.push(this.styles.get(`${family} ${next}`)?.attributes['style:display-name'] ?? next.replaceAll('_20_', ' '))
      next = this.styles.get(`${family} ${next}`)?.attributes['style:parent-style-name']
    }
    return names
  }

  characterFormat(name: string | undefined): CharacterFormat {
    const value = (attribute: string): string => this.textProperty(name, attribute) ?? ''
    const position = value('style:text-position')
    return {
      isBold: /^(?:bold|[6-9]00)$/.test(value('fo:font-weight')),
      isItalic: /^(?:italic|oblique)$/.test(value('fo:font-style')),
      isStruck: !/^(?:none)?$/.test(value('style:text-line-through-style')),
      isFixedPitch: FIXED_PITCH.test(value('style:font-name') || value('fo:font-family')),
      script: /^(?:super|[1-9])/.test(position) ? 'sup' : /^(?:sub|-)/.test(position) ? 'sub' : '',
    }
  }

  /** Whether a list has numbers at a level, counted from 1; undefined for an unknown list. */
  isNumbered(name: string | undefined, level: number): boolean | undefined {
    const style = this.lists.get(name ?? '')?.get(level)
    if (style === undefined) return undefined
    return style.name === 'list-level-style-number' && style.attributes['style:num-format'] !== ''
  }

  startOf(name: string | undefined, level: number): string | undefined {
    return this.lists.get(name ?? '')?.get(level)?.attributes['text:start-value']
  }

  /** Whether tables of the style are hidden, as sheets may be. */
  isHiddenTable(name: string | undefined): boolean {
    const properties = descendant(this.styles.get(`table ${name ?? ''}`), 'table-properties')
    return properties?.attributes['table:display'] === 'false'
  }

  private textProperty(name: string | undefined, attribute: string): string | undefined {
    let style = this.styles.get(`text ${name ?? ''}`)
    for (let level = 0; style !== undefined && level < LONGEST_CHAIN; level += 1) {
      const value = descendant(style, 'text-properties')?.attributes[attribute]
      if (value !== undefined) return value
      style = this.styles.get(`text ${style.attributes['style:parent-style-name'] ?? ''}`)
    }
    return undefined
  }
}

function levelsOf(list: XmlElement): ReadonlyMap<number, XmlElement> {
  return new Map(childElements(list).map((level) => [Number(level.attributes['text:level'] ?? 1), level]))
}

function languageIn(style: XmlElement): string {
  const { 'fo:language': language = '', 'fo:country': country = '' } =
    descendant(style, 'text-properties')?.attributes ?? {}
  return language === '' || language === 'none'
    ? ''
    : languageTag(/^[A-Z]{2}$/.test(country) ? `${language}-${country}` : language)
}
