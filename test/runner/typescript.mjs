import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { transform } from '@swc/core'

/** The packages are tested as sources, like the gateway; Node itself loads what they build. */
const SOURCE = '@multi-model-gateway/source'

export function resolve(specifier, context, next) {
  if (specifier === '@jest/globals') return next(new URL('./globals.mjs', import.meta.url).href, context)
  const conditions = [...context.conditions, SOURCE]
  if (specifier.startsWith('.') && specifier.endsWith('.js') && context.parentURL?.endsWith('.ts')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL)
    if (existsSync(source)) return { url: source.href, format: 'module', shortCircuit: true }
  }
  return next(specifier, { ...context, conditions })
}

const OPTIONS = {
  swcrc: false,
  sourceMaps: 'inline',
  module: { type: 'es6' },
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    target: 'es2022',
  },
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  const filename = fileURLToPath(url)
  const { code } = await transform(await readFile(filename, 'utf8'), { ...OPTIONS, filename })
  return { format: 'module', source: code, shortCircuit: true }
}
