import { Parser } from 'htmlparser2'
import { EngineFault } from '../model/document.js'
import { decodeText } from '../text/charset.js'

/** Most levels: Word uses about ten for each nested table, and readers of the tree use recursion. */
const DEEPEST = 256
/** Most elements of a part that is read into a tree. */
const MOST_ELEMENTS = 500_000

export interface XmlElement {
  /** Name without its prefix, which every writer may choose. */
  readonly name: string
  /** Attributes with their prefixes as written. */
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly (XmlElement | string)[]
}

export interface XmlHandlers {
  readonly open: (name: string, attributes: XmlElement['attributes'], prefixedName: string) => void
  readonly text: (text: string) => void
  readonly close: (name: string, prefixedName: string) => void
}

/**
 * Scans a part of an Office file, and tolerates markup that is not well-formed. Document types, which could declare entities,
 * are refused; names are without their prefixes. Linear time.
 *
 * @throws EngineFault `broken`, `too_large`
 */
export function scanXml(bytes: Uint8Array, handlers: XmlHandlers): void {
  let depth = 0
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1
        if (depth > DEEPEST) throw new EngineFault('too_large', 'The file is nested too deeply.')
        handlers.open(localName(name), attributes, name)
      },
      ontext: handlers.text,
      onclosetag(name) {
        depth -= 1
        handlers.close(localName(name), name)
      },
      onprocessinginstruction(name) {
        if (/^!doctype/i.test(name))
          throw new EngineFault('broken', 'The file is damaged: it declares a document type.')
      },
    },
    { xmlMode: true },
  )
  parser.end(decodeText(bytes, ''))
}

/** A counter to be called for each element; throws an EngineFault `too_large` after `most`. */
export function elementCounter(most: number): () => void {
  let elements = 0
  return () => {
    elements += 1
    if (elements > most) throw new EngineFault('too_large', 'The file holds too many elements.')
  }
}

/** Builds a tree from the events of a scan. */
export class TreeCollector {
  private readonly root = { name: '', attributes: {}, children: [] as (XmlElement | string)[] }
  private readonly path = [this.root]

  open(name: string, attributes: XmlElement['attributes']): void {
    const element = { name, attributes, children: [] }
    this.path.at(-1)?.children.push(element)
    this.path.push(element)
  }

  text(text: string): void {
    this.path.at(-1)?.children.push(text)
  }

  /** The first element of the tree when that is complete. */
  close(): XmlElement | undefined {
    this.path.pop()
    return this.path.length > 1 ? undefined : childElements(this.root)[0]
  }
}

/** The root element; undefined for a part without one. Throws like `scanXml`. */
export function parseXml(bytes: Uint8Array): XmlElement | undefined {
  const tree = new TreeCollector()
  const countElement = elementCounter(MOST_ELEMENTS)
  let root: XmlElement | undefined
  scanXml(bytes, {
    open(name, attributes) {
      countElement()
      tree.open(name, attributes)
    },
    text(text) {
      tree.text(text)
    },
    close() {
      root ??= tree.close()
    },
  })
  return root
}

export function childElements(element: XmlElement | undefined, name?: string): XmlElement[] {
  const elements = (element?.children ?? []).filter((child) => typeof child !== 'string')
  return name === undefined ? elements : elements.filter((child) => child.name === name)
}

/** The first element at the end of a path of names. */
export function descendant(element: XmlElement | undefined, ...path: readonly string[]): XmlElement | undefined {
  let current = element
  for (const name of path) current = childElements(current, name)[0]
  return current
}

export function textOf(element: XmlElement | undefined): string {
  return (element?.children ?? []).map((child) => (typeof child === 'string' ? child : textOf(child))).join('')
}

/** Value of an attribute such as `r:id`, whatever prefix the writer uses. */
export function relationId(attributes: XmlElement['attributes'], name = 'id'): string | undefined {
  const key = Object.keys(attributes).find((candidate) => candidate.endsWith(`:${name}`))
  return key === undefined ? undefined : attributes[key]
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}
