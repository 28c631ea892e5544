// Plays a container engine for scripts/test-image.mjs. PLAY, JSON in the environment, has the rules: of those whose pattern
// matches the words of the command, the first says what is printed, and whether it fails. Every command is noted.
import { appendFileSync } from 'node:fs'

const { rules, notes } = JSON.parse(process.env.PLAY)
const command = process.argv.slice(2).join(' ')
appendFileSync(notes, `${JSON.stringify(command)}\n`)
const { says = '', fails = false } = rules.find(({ on }) => new RegExp(on).test(command)) ?? {}
process[fails ? 'stderr' : 'stdout'].write(`${says}\n`)
process.exitCode = fails ? 1 : 0
