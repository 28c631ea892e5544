import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { blocksToMdast } from './blocks-to-mdast.mjs'

const ENGINE = new URL('../../../packages/document-engine/dist/', import.meta.url)
/** A module of the built engine. */
export const engineModule = (path) => import(new URL(path, ENGINE))

/** Packages that are no dependency of the project: imported from the directory they were installed into. */
export function packagesIn(directory) {
  const require = createRequire(join(resolve(directory), 'package.json'))
  return (name) => import(pathToFileURL(require.resolve(name)))
}

const STYLE = { bullet: '-', rule: '-', fences: true, listItemIndent: 'one' }

function absolute(name, value, baseUrl) {
  if (name !== 'href' && name !== 'src') return value
  return URL.canParse(value, baseUrl) ? new URL(value, baseUrl).href : value
}

function attributesOf({ attributes = [] }) {
  return attributes instanceof Map ? attributes : new Map(Array.from(attributes, ({ name, value }) => [name, value]))
}

/** The engine's tree, or linkedom's, as hast, with absolute addresses; without recursion, so that depth is no limit here. */
export function hastOf(root, baseUrl) {
  const convert = (node) => {
    if (node.nodeType === 3) return { type: 'text', value: node.data }
    const attributes = attributesOf(node)
    const properties = {}
    for (const [name, value] of attributes)
      properties[name === 'class' ? 'className' : name] =
        name === 'class' ? value.split(/\s+/) : absolute(name, value, baseUrl)
    return { type: 'element', tagName: node.localName ?? 'body', properties, children: [] }
  }
  const whole = { type: 'root', children: [] }
  const waiting = [[root, whole]]
  while (waiting.length > 0) {
    const [node, parent] = waiting.pop()
    const copy = convert(node)
    parent.children.push(copy)
    const children = []
    for (let child = node.firstChild; child; child = child.nextSibling)
      if ([1, 3].includes(child.nodeType)) children.push([child, copy])
    waiting.push(...children.reverse())
  }
  return whole
}

/** Writers by name, each (tree, baseUrl) => Markdown: the engine's own, and two that use the packages. */
export async function writers(importPackage) {
  const { htmlToMarkdown, readMarkup } = await engineModule('markdown/html-to-markdown.js')
  const [{ toMdast }, { toMarkdown }, { gfmToMarkdown }, { mathToMarkdown }] = await Promise.all(
    ['hast-util-to-mdast', 'mdast-util-to-markdown', 'mdast-util-gfm', 'mdast-util-math'].map(importPackage),
  )
  const write = (mdast) =>
    toMarkdown(mdast, { ...STYLE, extensions: [gfmToMarkdown({ tablePipeAlign: false }), mathToMarkdown()] })
  return {
    engine: (tree, baseUrl) => htmlToMarkdown(tree, { baseUrl }),
    // Everything by the packages: elements to mdast, mdast to Markdown.
    hast: (tree, baseUrl) => write(toMdast(hastOf(tree, baseUrl), { document: true })),
    // The engine's handlers of elements, the packages' Markdown.
    model: (tree, baseUrl) => write(blocksToMdast(readMarkup(tree, baseUrl))),
  }
}

/** Markdown as HTML, by the packages' parser of CommonMark and GFM; tags are let through, so that they show. */
export async function renderer(importPackage) {
  const { micromark } = await importPackage('micromark')
  const { gfm, gfmHtml } = await importPackage('micromark-extension-gfm')
  const options = {
    extensions: [gfm()],
    htmlExtensions: [gfmHtml()],
    allowDangerousHtml: true,
    allowDangerousProtocol: true,
  }
  return (markdown) => micromark(markdown, options)
}
