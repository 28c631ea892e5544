// `npm start` builds when there is no build, or when a source file is newer than it.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const OUTPUT = 'dist/main.js'

const newestMs = (directory) =>
  Math.max(
    ...readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs),
  )

if (!existsSync(OUTPUT) || statSync(OUTPUT).mtimeMs < newestMs('src')) {
  const { status } = spawnSync('npm', ['run', 'build', '--silent'], { stdio: 'inherit' })
  process.exitCode = status ?? 1
}
