import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { transform } from '@swc/core'
import { SWC_OPTIONS } from '../../scripts/swc-options.mjs'

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

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  const filename = fileURLToPath(url)
  const { code } = await transform(await readFile(filename, 'utf8'), { ...SWC_OPTIONS, sourceMaps: 'inline', filename })
  return { format: 'module', source: code, shortCircuit: true }
}
