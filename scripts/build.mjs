// Writes the `dist` of the folders it is given, or of the gateway and both packages.
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { transformFileSync } from '@swc/core'
import { bundleCommands } from './bundle.mjs'
import { prepareStore } from './prepare-store.mjs'
import { SWC_OPTIONS } from './swc-options.mjs'

function compile(source, output) {
  const sourceFileName = relative(dirname(output), source)
  const { code, map } = transformFileSync(source, {
    ...SWC_OPTIONS,
    sourceMaps: true,
    inlineSourcesContent: false,
    sourceFileName,
  })
  writeFileSync(output, `${code}//# sourceMappingURL=${basename(output)}.map\n`)
  writeFileSync(`${output}.map`, map)
}

function build(folder) {
  const sources = join(folder, 'src')
  const outputs = join(folder, 'dist')
  rmSync(outputs, { recursive: true, force: true })
  for (const name of readdirSync(sources, { recursive: true })) {
    if (!/\.(?:ts|mjs)$/.test(name) || name.endsWith('.spec.ts')) continue
    const source = join(sources, name)
    const output = join(outputs, name.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(output), { recursive: true })
    if (name.endsWith('.mjs')) cpSync(source, output)
    else compile(source, output)
  }
}

const folders = process.argv.slice(2)
for (const folder of folders.length > 0 ? folders : ['packages/document-engine', 'packages/sandbox', '.']) build(folder)

async function complete(dist) {
  // Before the bundles take the place of the modules that make it.
  await prepareStore(dist)
  await bundleCommands(dist)
}

if (folders.length === 0 || folders.includes('.'))
  await complete('dist').catch((error) => {
    // Without them `dist` would look like a build, and start.
    rmSync('dist/main.js', { force: true })
    throw error
  })
