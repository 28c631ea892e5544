// `node scripts/sizing.mjs`, after `npm run bench`: puts the figures of bench/results.json into docs/operations.md, "Sizing",
// between its two marks.
import { readFileSync, writeFileSync } from 'node:fs'
import { formatted } from './format.mjs'

const PAGE = 'docs/operations.md'
const [BEGIN, END] = ['<!-- sizing: node scripts/sizing.mjs -->', '<!-- /sizing -->']

const { date, machine, cpu, memory } = JSON.parse(readFileSync('bench/results.json', 'utf8'))

/** CPU time of one request, in whole µs below a millisecond, otherwise in ms; and the requests a second that use one CPU. */
function workOf({ gatewayUs }) {
  const shown = gatewayUs < 1000 ? `${Math.round(gatewayUs)} µs` : `${Math.round(gatewayUs / 1000)} ms`
  return [shown, String(Math.floor(1_000_000 / gatewayUs))]
}

const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`

const { streams } = memory.plan.openStreams
const { beforeBytes, growthBytes } = memory.openStreams.gateway
const rows = [
  ['', 'CPU time', 'Maximum a second, one CPU'],
  ['---', '---', '---'],
  ['Chat, 1 KB each way', ...workOf(cpu.chat)],
  ['Chat stream of 100 events', ...workOf(cpu.stream)],
  ['Speech of 200 KB', ...workOf(cpu.speech)],
  ['Upload of 25 MB', ...workOf(cpu.upload)],
]

const text = [
  BEGIN,
  '',
  `Measured on ${date.slice(0, 10)} with Node ${machine.node.slice(1)} on an ${machine.cpu}; the upstream is on the same machine.`,
  '',
  ...rows.map((row) => `| ${row.join(' | ')} |`),
  '',
  `A process that has served chat uses ${megabytes(beforeBytes)}; ${streams} open streams add ${megabytes(growthBytes)}.`,
  '',
  END,
].join('\n')

const page = readFileSync(PAGE, 'utf8')
const [before, rest] = page.split(BEGIN)
const after = rest?.split(END)[1]
if (after === undefined) throw new Error(`${PAGE} has not both ${BEGIN} and ${END}.`)
writeFileSync(PAGE, await formatted(PAGE, `${before}${text}${after}`))
console.log(`${PAGE}: figures of ${date}.`)
