import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { FAULT_NAMES } from '@multi-model-gateway/sandbox/server/faults.js'
import { readEnvironment } from '../../src/config/environment.js'
import { parseConfig } from '../../src/config/load-config.js'
import type { Schema } from '../../src/config/schema-schema.js'
import { configSchema } from '../../src/config/schema.js'
import { ERROR_KINDS } from '../../src/core/errors.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

const markdownIn = (folder: string, recursive: boolean): string[] =>
  readdirSync(join(ROOT, folder), { recursive, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => normalize(join(folder, name)))

const DOCUMENTS = [...markdownIn('.', false), ...markdownIn('docs', true), ...markdownIn('bench', true)]

/** The first group of every match. */
const found = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, group]) => group ?? '')

/** The cells of every table row, without the code marks around them; `\|` stands for itself. */
function tableRows(text: string): string[][] {
  return found(text, /^\|(.+)\|$/gm).map((row) =>
    row.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/^`([^`]*)`$/, '$1')),
  )
}

const withoutCode = (text: string): string => text.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '')

/** Anchors as GitHub makes them: lower case, no punctuation, hyphens for spaces. */
const anchorsOf = (text: string): string[] =>
  found(text.replaceAll(/^```[^]*?^```$/gm, ''), /^#+ (.+)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

describe('the documents', () => {
  it('are found', () => {
    expect(DOCUMENTS).toEqual(expect.arrayContaining(['README.md', 'docs/operations.md', 'bench/README.md']))
    expect(DOCUMENTS.filter((name) => name.startsWith('docs/decisions/')).length).toBeGreaterThanOrEqual(6)
  })

  it.each(DOCUMENTS)('link to nothing that does not exist: %s', (document) => {
    const links = found(withoutCode(read(document)), /\]\((?!https?:)([^)\s]+)\)/g)
    const broken = links.filter((link) => {
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? document : join(dirname(document), path)
      if (!existsSync(join(ROOT, target))) return true
      return anchor !== undefined && !anchorsOf(read(target)).includes(anchor)
    })
    expect(broken).toEqual([])
  })

  it.each(DOCUMENTS.filter((name) => name !== 'docs/spec.md'))('name no file that does not exist: %s', (document) => {
    const paths = found(read(document), /`((?:src|test|docs)\/[^`\s<>*]*)`/g)
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  it('name no npm script that does not exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const named = DOCUMENTS.flatMap((document) => [
      ...found(read(document), /\bnpm run ([a-z:-]+)/g),
      ...found(read(document), /\bnpm (start|test)\b/g),
    ])
    expect(named).toEqual(expect.arrayContaining(['start', 'test', 'bench', 'documents']))
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([])
  })
})

describe('the README', () => {
  it('says "works" of exactly the routes that openapi.json has', () => {
    const works = tableRows(read('README.md')).filter((cells) => cells.at(-1) === 'works')
    const { paths } = JSON.parse(read('openapi.json')) as { paths: Record<string, object> }
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(works.map(([, route]) => route).sort()).toEqual(routes.sort())
  })

  it('shows configurations that load', () => {
    const blocks = found(read('README.md'), /^```yaml\n([^]*?)^```$/gm)
    const anything = new Proxy<Record<string, string>>({}, { get: (_, name) => lettersOf(String(name)) })
    expect(blocks.length).toBeGreaterThanOrEqual(1)
    for (const block of blocks) expect(parseConfig(block, anything).channels.length).toBeGreaterThanOrEqual(1)
  })

  it('explains every word that makes the sandbox fail', () => {
    const wordsIn = (name: string): string[] => found(read(name), /`#([a-z0-9]+)`/g)
    const words = new Set<string>([...FAULT_NAMES, ...wordsIn('src/sandbox/vidgen/vidgen-words.ts')])
    expect(words.size).toBeGreaterThan(FAULT_NAMES.length)
    expect(wordsIn('README.md').sort()).toEqual([...words].sort())
  })
})

/** A value for the placeholders of an example; none for the variables that win over the file. */
const lettersOf = (name: string): string | undefined => (name.endsWith('_KEY') ? `value-of-${name}` : undefined)

interface Setting {
  readonly path: string
  readonly fallback: string
}

/** Every setting of the schema below its sections, with its default as the reference writes it. */
function settingsOf(schema: Schema<unknown>, path: string): Setting[] {
  const inItem = schema.item === undefined ? [] : settingsOf(schema.item, `${path}[]`)
  const inVariants = Object.values(schema.variants ?? {}).flatMap((variant) => settingsOf(variant, path))
  const inFields = Object.entries(schema.fields ?? {}).flatMap(([name, field]) => {
    const below = path === '' ? name : `${path}.${name}`
    const isSection = path === '' && field.schema.fields !== undefined
    const fallback = { required: 'required', optional: '–', defaulted: '' }[field.presence]
    const shown = 'fallback' in field && field.fallback !== undefined ? JSON.stringify(field.fallback) : fallback
    return [...(isSection ? [] : [{ path: below, fallback: shown }]), ...settingsOf(field.schema, below)]
  })
  return [...inItem, ...inVariants, ...inFields]
}

describe('docs/operations.md', () => {
  const rows = tableRows(read('docs/operations.md'))

  it('lists every setting with its default, and no other', () => {
    const settings = new Map(settingsOf(configSchema, '').map(({ path, fallback }) => [path, fallback]))
    const sections = Object.keys(configSchema.fields ?? {})
    const listed = new Map(
      rows
        // The name of a section alone is also a field of the log.
        .filter(
          ([key = '']) => sections.includes(key.split(/[.[]/, 1)[0] ?? '') && (/[.[]/.test(key) || settings.has(key)),
        )
        .map(([key = '', , fallback = '']) => [key, fallback]),
    )
    expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(settings))
    expect(settings.size).toBeGreaterThan(40)
  })

  it('lists every variable of the environment', () => {
    const asked = new Set<string>()
    readEnvironment(new Proxy({}, { get: (_, name) => void asked.add(String(name)) }))
    const text = read('docs/operations.md')
    // Each may also come from a file, which is said once for all.
    const named = [...asked].filter((name) => !name.endsWith('_FILE'))
    expect(named.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
    expect(asked.size).toBeGreaterThanOrEqual(8)
  })

  it('gives every kind of error what it becomes in each dialect, as the table in the code has it', () => {
    const expected = Object.entries(ERROR_KINDS).map(([kind, { audio, messages, task, shouldRetry }]) => [
      kind,
      ...[audio.status, audio.chatStatus, audio.type, audio.code ?? '–'].map(String),
      `${messages.status} ${messages.type}`,
      `${task.status}, ${task.code}`,
      shouldRetry === false ? 'false' : '–',
    ])
    expect(rows.filter(([kind = '', ...rest]) => Object.hasOwn(ERROR_KINDS, kind) && rest.length === 7)).toEqual(
      expected,
    )
  })
})
