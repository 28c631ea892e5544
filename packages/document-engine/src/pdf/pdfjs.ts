import Module, { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'

const requireHere = createRequire(import.meta.url)

export type Pdfjs = typeof import('pdfjs-dist/legacy/build/pdf.mjs')
export type PdfDocument = import('pdfjs-dist/legacy/build/pdf.mjs').PDFDocumentProxy
export type PdfSheet = import('pdfjs-dist/legacy/build/pdf.mjs').PDFPageProxy

let loading: Promise<Pdfjs> | undefined

/** Loads pdf.js with the first PDF: it costs about 100 ms and 30 MB, which other formats do not need. */
export function loadPdfjs(): Promise<Pdfjs> {
  loading ??= keepingBuiltIns(importWithoutCanvas)
  return loading
}

/** The objects that the language has, and their prototypes. Those that Node adds are getters, which would load what they name. */
function builtIns(): object[] {
  const globals = Object.entries(Object.getOwnPropertyDescriptors(globalThis))
  const values = globals.flatMap(([name, { value }]): unknown[] => (/^[A-Z]/.test(name) ? [value] : []))
  return values
    .flatMap((value) => [value, (value as { readonly prototype?: unknown } | undefined)?.prototype])
    .filter(isObject)
}

const isObject = (value: unknown): value is object =>
  typeof value === 'function' || (typeof value === 'object' && value !== null)

/**
 * core-js, which the package brings, replaces built-ins of the whole process: `JSON.parse`, `JSON.stringify`, `Array.prototype.push`
 * and `Function.prototype.toString` on Node 20, methods of sets and iterators on 22, by JavaScript that takes a hundred times as
 * long for a string of megabytes. What it adds stays: pdf.js needs it.
 */
async function keepingBuiltIns<Result>(load: () => Promise<Result>): Promise<Result> {
  const natives = builtIns().map((object): [object, PropertyDescriptorMap] => [
    object,
    Object.getOwnPropertyDescriptors<object>(object),
  ])
  try {
    return await load()
  } finally {
    for (const [object, descriptors] of natives) Object.defineProperties(object, descriptors)
  }
}

/** A font face that has nothing to load. */
class FontFaceStandIn {
  readonly loaded = Promise.resolve()
}

/**
 * Options by which pdf.js believes that it can load fonts. Otherwise it compiles the outline of every glyph, to draw it itself, and
 * copies it to this side: a sixth of the time of a PDF, for drawings that are never made.
 */
export function fontLoading(): { disableFontFace: false; ownerDocument: never } {
  // Of the type of a browser's document, which pdf.js asks for nothing else.
  return { disableFontFace: false, ownerDocument: { fonts: new Set() } as never }
}

/** Data directories of the package, each with a slash at its end. */
export function pdfjsData(): { cMapUrl: string; standardFontDataUrl: string } {
  const root = dirname(requireHere.resolve('pdfjs-dist/package.json'))
  return { cMapUrl: `${root}/cmaps/`, standardFontDataUrl: `${root}/standard_fonts/` }
}

/**
 * pdfjs-dist loads a native canvas of 20 MB on Node, for three classes that only drawing needs. Nothing is drawn here, so
 * they are replaced by stubs.
 */
async function importWithoutCanvas(): Promise<Pdfjs> {
  const standIns = { DOMMatrix: Object, ImageData: Object, Path2D: Object, FontFace: FontFaceStandIn }
  for (const [name, standIn] of Object.entries(standIns)) {
    if (!(name in globalThis)) Reflect.set(globalThis, name, standIn)
  }
  const path = canvasPath()
  if (path !== undefined && requireHere.cache[path] === undefined) {
    requireHere.cache[path] = Object.assign(new Module(path), { loaded: true, exports: standIns })
  }
  // pdf.js takes its worker from this name; otherwise it would import it with the first document, after the built-ins were put back.
  const worker = pathToFileURL(requireHere.resolve('pdfjs-dist/legacy/build/pdf.worker.mjs')).href
  Reflect.set(globalThis, 'pdfjsWorker', await import(worker))
  return import('pdfjs-dist/legacy/build/pdf.mjs')
}

function canvasPath(): string | undefined {
  try {
    return createRequire(requireHere.resolve('pdfjs-dist/package.json')).resolve('@napi-rs/canvas')
  } catch {
    return undefined
  }
}
