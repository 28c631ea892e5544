// `npm start` builds unless the build is newer than all it is made of, and has a file for each source and no other.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

const OUTPUT = 'dist/main.js'
const SETTINGS = /^(?:package|package-lock|nest-cli|tsconfig.*)\.json$/

const filesIn = (directory) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** The names below a folder, without folder and ending, in one text that can be compared. */
const namesIn = (directory, ending) =>
  filesIn(directory)
    .filter((file) => file.endsWith(ending) && !file.endsWith('.spec.ts'))
    .map((file) => file.slice(directory.length, -ending.length))
    .sort()
    .join('\n')

function isUpToDate() {
  if (!existsSync(OUTPUT)) return false
  const builtAtMs = statSync(OUTPUT).mtimeMs
  const inputs = [...filesIn('src'), ...readdirSync('.').filter((name) => SETTINGS.test(name))]
  if (inputs.some((file) => statSync(file).mtimeMs > builtAtMs)) return false
  // A source that was deleted or renamed leaves no newer file behind.
  return namesIn('src', '.ts') === namesIn('dist', '.js')
}

if (!isUpToDate()) {
  const { status } = spawnSync('npm', ['run', 'build', '--silent'], { stdio: 'inherit' })
  process.exitCode = status ?? 1
  // The compiler writes files in spite of errors: the next start must not take them for a build.
  if (status !== 0) rmSync(OUTPUT, { force: true })
}
