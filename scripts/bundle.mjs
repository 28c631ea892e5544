// Bundles the commands of the gateway with the packages they use: a start reads some fifty files in place of three thousand,
// in half the time, and holds a sixth less memory (docs/decisions/0033). The modules stay beside it for `bench` and `scripts`.
import { readFile, writeFile } from 'node:fs/promises'
import { createRequire, isBuiltin } from 'node:module'
import { relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { ownSourceMap } from './own-source-map.mjs'

const COMMANDS = ['main', 'migrate', 'keys-cli', 'store-cli']

/**
 * Packages that the framework asks for and the gateway does not use; one that looks for files beside itself; and `ws`, which the
 * framework loads by a `require` of its own, so that there would be two of it. (`swagger-ui-dist` is loaded that way alone.)
 */
const EXTERNAL = [
  '@electric-sql/pglite',
  '@fastify/static',
  '@fastify/view',
  '@mikro-orm/core',
  '@nestjs/microservices',
  '@nestjs/mongoose',
  '@nestjs/platform-socket.io',
  'class-transformer/storage',
  'mongoose',
  'pg-native',
  'ws',
]

/** Decorators need their metadata before any other module runs; CommonJS packages expect the rest in scope. */
const HEAD = `import 'reflect-metadata'
import { createRequire as requireFrom } from 'node:module'
const require = requireFrom(import.meta.url)
const { dirname: __dirname, filename: __filename } = import.meta`

const escaped = (text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** A module finds its files from where it was before it was bundled. */
const ownPlaces = (folder) => ({
  name: 'own-places',
  setup: ({ onLoad }) => {
    // esbuild asks for each file that passes the filter, which costs more than the filter.
    onLoad({ filter: new RegExp(`^${escaped(resolve(folder) + sep)}.*\\.js$`) }, async ({ path }) => {
      const place = JSON.stringify(`./${relative(resolve(folder), path).replaceAll(sep, '/')}`)
      const url = `new URL(${place}, import.meta.url).href`
      return { contents: (await readFile(path, 'utf8')).replaceAll('import.meta.url', url) }
    })
  },
})

const ES_MODULE = /^(?:import|export)\s/m
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u

/** `import()` of a CommonJS package has the names that Node finds in it; esbuild alone leaves `default`, which is not asked for. */
const namesOfCommonJs = {
  name: 'names-of-common-js',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^[^./]/ }, async ({ path, kind, importer, resolveDir }) => {
      if (
        kind !== 'dynamic-import' ||
        isBuiltin(path) ||
        EXTERNAL.some((name) => path === name || path.startsWith(`${name}/`))
      )
        return undefined
      const file = createRequire(importer).resolve(path)
      if (ES_MODULE.test(await readFile(file, 'utf8'))) return undefined
      return { path, namespace: 'common-js', pluginData: { file, resolveDir } }
    })
    onLoad({ filter: /.*/, namespace: 'common-js' }, async ({ path, pluginData: { file, resolveDir } }) => {
      const names = Object.keys(await import(pathToFileURL(file).href))
      const named = names.filter((name) => name !== 'default' && IDENTIFIER.test(name))
      return { contents: `export { ${named.join(', ')} } from '${path}'`, resolveDir }
    })
  },
}

/** Of each language the package tells its name, scope and type as well: half a megabyte that is not asked for. */
const codesOfLanguages = {
  name: 'codes-of-languages',
  setup: ({ onLoad }) => {
    onLoad({ filter: /[/\\]iso-639-3[/\\]iso6393\.js$/ }, async ({ path }) => {
      const { iso6393: languages } = await import(pathToFileURL(path).href)
      const codes = languages.map(({ iso6391, iso6393 }) => ({ iso6391, iso6393 }))
      return { contents: `export const iso6393 = JSON.parse('${JSON.stringify(codes)}')` }
    })
  },
}

/** Writes source maps that tell of our own modules alone. */
const ownSourceMaps = {
  name: 'own-source-maps',
  setup: ({ initialOptions, onEnd }) => {
    initialOptions.metafile = true
    onEnd(async ({ metafile }) => {
      for (const file of Object.keys(metafile?.outputs ?? {}).filter((name) => name.endsWith('.map'))) {
        const map = JSON.parse(await readFile(file, 'utf8'))
        await writeFile(file, JSON.stringify(ownSourceMap(map, (source) => !source.includes('node_modules/'))))
      }
    })
  },
}

/** Replaces the commands in `folder`, the compiled `src`, by their bundles. */
export const bundleCommands = (folder) =>
  build({
    entryPoints: COMMANDS.map((command) => `${folder}/${command}.js`),
    outdir: folder,
    allowOverwrite: true,
    // Beside the commands: what a bundled module calls `./` is then the same place in all of them.
    chunkNames: 'chunk-[hash]',
    bundle: true,
    splitting: true,
    // V8 holds the text of what it runs. Names stay, as some are shown.
    minifyWhitespace: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    external: ['reflect-metadata', ...EXTERNAL],
    banner: { js: HEAD },
    sourcemap: true,
    sourcesContent: false,
    plugins: [ownPlaces(folder), namesOfCommonJs, codesOfLanguages, ownSourceMaps],
    logLevel: 'warning',
  })
