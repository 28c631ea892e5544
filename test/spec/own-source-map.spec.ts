import { SourceMap, type SourceMapPayload } from 'node:module'
import { describe, expect, it } from '@jest/globals'
import { build } from 'esbuild'

const { ownSourceMap } = (await import(new URL('../../scripts/own-source-map.mjs', import.meta.url).href)) as {
  readonly ownSourceMap: (map: SourceMapPayload, isOwn: (source: string) => boolean) => SourceMapPayload
}

/** By the names that they are imported by. */
const MODULES: Readonly<Record<string, string>> = {
  'src/main':
    "import { theirs } from 'node_modules/theirs'\n\nimport { ours } from 'src/ours'\nexport const both = () => theirs() + ours()",
  'node_modules/theirs': 'export function theirs() {\n  throw new Error(`theirs`)\n}',
  'src/ours': '// A comment\n\nexport function ours() {\n  return   new   Error(`ours`)\n}',
}

/** The bundle, in one line as those of the gateway nearly are, and its map. */
async function bundled(): Promise<{ readonly code: string; readonly map: SourceMapPayload }> {
  const { outputFiles } = await build({
    entryPoints: ['src/main'],
    bundle: true,
    write: false,
    minifyWhitespace: true,
    sourcemap: true,
    format: 'esm',
    outfile: 'dist/main.js',
    plugins: [
      {
        name: 'modules',
        setup: (build) => {
          build.onResolve({ filter: /.*/ }, ({ path }) => ({ path, namespace: 'here' }))
          build.onLoad({ filter: /.*/, namespace: 'here' }, ({ path }) => ({ contents: MODULES[path] ?? '' }))
        },
      },
    ],
  })
  const [map, code] = outputFiles.map(({ text }) => text)
  return { code: code ?? '', map: JSON.parse(map ?? '') as SourceMapPayload }
}

describe('A source map of our own modules', () => {
  it('says of each place in them what the whole map says, and of places in packages nothing', async () => {
    const { code, map } = await bundled()
    const [whole, own] = [map, ownSourceMap(map, (source) => !source.includes('node_modules/'))].map(
      (payload) => new SourceMap(payload),
    )
    const places = code
      .split('\n')
      .flatMap((text, line) => Array.from({ length: text.length }, (_, column) => [line, column] as const))
    const entries = places.map(([line, column]) => {
      const { originalSource, originalLine, originalColumn } = (whole as SourceMap).findEntry(line, column) as Entry
      const kept = (own as SourceMap).findEntry(line, column) as Entry
      const isOwn = originalSource?.includes('src/') === true
      return {
        isOwn,
        expected: isOwn ? [originalSource, originalLine, originalColumn] : [undefined, undefined, undefined],
        found: [kept.originalSource, kept.originalLine, kept.originalColumn],
      }
    })
    expect(entries.map(({ found }) => found)).toEqual(entries.map(({ expected }) => expected))
    expect(new Set(entries.map(({ isOwn }) => isOwn))).toEqual(new Set([true, false]))
  })
})

interface Entry {
  readonly originalSource?: string
  readonly originalLine?: number
  readonly originalColumn?: number
}
