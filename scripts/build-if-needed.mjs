// `npm start` builds unless each build is newer than all it is made of, and has a file for each source and no other.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const OUTPUT = 'dist/main.js'
const PACKAGES = ['packages/document-engine', 'packages/sandbox', '.']
const SETTINGS = /^(?:package|package-lock)\.json$/
const BUILD = ['build', 'bundle', 'own-source-map', 'prepare-store', 'swc-options'].map((name) => `scripts/${name}.mjs`)
/** Written by running gateways, not by the build (`src/app/start-up.ts`). */
const CACHE = join('dist', 'compile-cache')
/** What the bundles share; it has no source of its name. */
const SHARED = /\/chunk-[^/]*$/

const filesIn = (directory) =>
  existsSync(directory)
    ? readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    : []

/** The names below a folder, without folder and ending, in one text that can be compared. */
const namesIn = (directory, ending) =>
  filesIn(directory)
    .filter((file) => file.endsWith(ending) && !file.endsWith('.spec.ts') && !SHARED.test(file))
    .map((file) => file.slice(directory.length, -ending.length))
    .sort()
    .join('\n')

const newestMs = (files) => Math.max(0, ...files.map((file) => statSync(file).mtimeMs))

/** What was compiled last is newer than every source: all files of a package are written in one go. */
function isUpToDate(folder) {
  const sources = join(folder, 'src')
  const output = join(folder, 'dist')
  const builtAtMs = newestMs(filesIn(output).filter((file) => !file.startsWith(CACHE)))
  const settings = readdirSync(folder).filter((name) => SETTINGS.test(name))
  if (newestMs([...filesIn(sources), ...settings.map((name) => join(folder, name)), ...BUILD]) > builtAtMs) return false
  // A source that was deleted or renamed leaves no newer file behind.
  return namesIn(sources, '.ts') === namesIn(output, '.js')
}

if (!existsSync(OUTPUT) || !PACKAGES.every(isUpToDate)) {
  const { status } = spawnSync('npm', ['run', 'build', '--silent'], { stdio: 'inherit' })
  process.exitCode = status ?? 1
}
