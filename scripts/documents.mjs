// Writes what is made from the built gateway: openapi.json, the tables of settings in docs/operations.md, and settings that
// gateway.example.yaml lacks; and the snippets of docs/clients.md, from the examples that are run. With --check, fails when a
// file on disk says something else.
import { readFile, writeFile } from 'node:fs/promises'
import { formatted } from './format.mjs'

const { openApiDocument } = await import('../dist/app/openapi.js')
const { PROVIDERS } = await import('../dist/app/providers.js')
const { configSchema } = await import('../dist/config/settings.js')
const { settingsOf } = await import('../dist/config/settings-reference.js')

const OPERATIONS = 'docs/operations.md'
const EXAMPLE = 'gateway.example.yaml'
const CLIENTS = 'docs/clients.md'

const settings = settingsOf(configSchema(PROVIDERS))

const shownDefault = ({ presence, fallback }) =>
  ({ required: 'required', optional: '–', defaulted: `\`${JSON.stringify(fallback)}\`` })[presence]

function tableOf(sections) {
  const rows = settings
    .filter(({ path }) => sections.includes(path.split(/[.[]/, 1)[0]))
    .map((setting) => [`\`${setting.path}\``, setting.type, shownDefault(setting), setting.meaning])
  return [['Key', 'Type', 'Default', 'Meaning'], ['-', '-', '-', '-'], ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n')
}

/** The reference with a table between each `<!-- settings: <section> … -->` and the end mark behind it. */
async function operations() {
  const text = await readFile(OPERATIONS, 'utf8')
  const shown = []
  const filled = text.replaceAll(
    /(<!-- settings: ([\w ]+) -->\n)[^]*?(\n<!-- end of settings -->)/g,
    (_match, start, names, end) => {
      shown.push(...names.split(' '))
      return `${start}\n${tableOf(names.split(' '))}\n${end}`
    },
  )
  const missing = settings.filter(({ path }) => !shown.includes(path.split(/[.[]/, 1)[0]))
  if (missing.length > 0)
    throw new Error(`${OPERATIONS} has no table for ${missing.map(({ path }) => path).join(', ')}`)
  const secrets = settings.filter(({ isSecret }) => isSecret).map(({ path }) => `\`${path}\``)
  const listed = filled.replace(
    /(<!-- secrets -->\n)[^]*?(\n<!-- end of secrets -->)/,
    (_match, start, end) => `${start}\n${secrets.join(', ')}\n${end}`,
  )
  return formatted(OPERATIONS, listed)
}

/**
 * The example with a line at the end of its section for each setting that it lacks, but for those of items of lists and of maps
 * within a section (`channels[].timeouts`): these, as all else that it says, are written by hand.
 */
async function example() {
  const sections = (await readFile(EXAMPLE, 'utf8')).split(/^(?=\w+:$)/m)
  for (const { path, meaning, presence, fallback } of settings) {
    const [section, name, ...deeper] = path.split('.')
    const index = sections.findIndex((text) => text.startsWith(`${section}:\n`))
    if (name === undefined || deeper.length > 0 || index === -1) continue
    if (new RegExp(`^  #?${name}:`, 'm').test(sections[index])) continue
    // What follows a section's last setting at the margin explains the next section.
    const [, own, rest] = /^([^]*\n {2}[^\n]*\n)([^]*)$/.exec(sections[index]) ?? [undefined, sections[index], '']
    const line = presence === 'defaulted' ? `${name}: ${JSON.stringify(fallback)}` : `#${name}:`
    sections[index] = `${own}  # ${meaning.replaceAll(/\[([^\]]*)\]\([^)]*\)|`/g, '$1')}.\n  ${line}\n${rest}`
  }
  return sections.join('')
}

/** The line of an example below which nothing is shown. */
const SNIPPET_END = /\n[^\n]*The lines above are the snippet of docs\/clients\.md\.[^]*/

/** The page with the beginning of an example in the fence behind each `<!-- snippet: <path of the example> -->`. */
async function clients() {
  const text = await readFile(CLIENTS, 'utf8')
  const paths = [...text.matchAll(/<!-- snippet: (\S+) -->/g)].map(([, path]) => path)
  const shown = await Promise.all(
    paths.map(async (path) => {
      const source = await readFile(path, 'utf8')
      if (!SNIPPET_END.test(source)) throw new Error(`${path} does not say where its snippet ends`)
      // Go's snippet ends within a function.
      return `${source.replace(SNIPPET_END, '').trimEnd()}${path.endsWith('.go') ? '\n}' : ''}`
    }),
  )
  const filled = text.replaceAll(
    /(<!-- snippet: \S+ -->\n\n```\w+\n)[^]*?(\n```)/g,
    (_, start, end) => `${start}${shown.shift()}${end}`,
  )
  return formatted(CLIENTS, filled)
}

for (const [file, text] of [
  ['openapi.json', `${JSON.stringify(openApiDocument(), null, 2)}\n`],
  [OPERATIONS, await operations()],
  [EXAMPLE, await example()],
  [CLIENTS, await clients()],
]) {
  if ((await readFile(file, 'utf8').catch(() => '')) === text) continue
  if (!process.argv.includes('--check')) {
    await writeFile(file, text)
  } else {
    console.error(`${file} is stale: run \`npm run documents\` and commit it.`)
    process.exitCode = 1
  }
}
