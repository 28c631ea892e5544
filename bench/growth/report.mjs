const MEGABYTE = 1024 * 1024
const fixed = (value, digits) => value.toFixed(digits)
const percent = (share) => `${fixed(share * 100, 0)} %`
const signed = (value, digits) => `${value < 0 ? '−' : '+'} ${fixed(Math.abs(value), digits)}`

const HEAD = ['Chat of 1 KB', 'µs', 'then', 'ratio', 'lowest – highest', 'adds µs', 'MB', 'then', 'aim', '']

const memoryMb = ({ baseBytes, variantBytes }) => (variantBytes - baseBytes) / MEGABYTE

function aimText({ ratio, addsUs, memoryMb: most }) {
  return [
    ...(ratio === undefined ? [] : [`ratio ≤ ${ratio}`]),
    ...(addsUs === undefined ? [] : [`+ ≤ ${addsUs} µs`]),
    ...(most === undefined ? [] : [`+ ≤ ${most} MB`]),
  ].join(', ')
}

/** What a row misses, in the order of its aims. */
function missedBy(row) {
  const { aim } = row
  return [
    ...(row.ratio > aim.ratio ? ['ratio'] : []),
    ...(row.addsUs > aim.addsUs ? ['time'] : []),
    ...(memoryMb(row) > aim.memoryMb ? ['memory'] : []),
  ]
}

function verdict(row) {
  if (Object.keys(row.aim).length === 0) return 'noise'
  const missed = missedBy(row)
  return missed.length === 0 ? 'met' : `MISSED: ${missed.join(' and ')}`
}

function cells(row) {
  if (row.missing !== undefined) return [row.title, ...Array.from({ length: HEAD.length - 2 }, () => ''), 'NOT RUN']
  return [
    row.title,
    fixed(row.baseUs, 1),
    fixed(row.variantUs, 1),
    fixed(row.ratio, 3),
    `${fixed(row.lowestRatio, 2)} – ${fixed(row.highestRatio, 2)}`,
    signed(row.addsUs, 1),
    fixed(row.baseBytes / MEGABYTE, 0),
    `${fixed(row.variantBytes / MEGABYTE, 0)} (${signed(memoryMb(row), 0)})`,
    aimText(row.aim),
    verdict(row),
  ]
}

/** As Markdown, whose columns are as wide as their longest cell. */
function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(3, ...rows.map((row) => row[column].length)))
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  const [head, ...rest] = rows
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rest.map(line)].join('\n')
}

function unsettled({ title, settled = {} }) {
  const roles = Object.keys(settled).filter((role) => !settled[role])
  return roles.length === 0 ? [] : [`NOT SETTLED after the warm-up: ${title}, ${roles.join(' and ')}.`]
}

/** What `growth.mjs` prints. */
export function growthReport({ machine, starts, rounds, rows, voids, driverShare, othersShare }) {
  return [
    `${machine}; medians of ${starts} starts of both, ${rounds} pairs of slots each, CPU of the whole process\n`,
    table([HEAD, ...rows.map(cells)]),
    '',
    ...rows.flatMap(({ title, missing }) => (missing === undefined ? [] : [`NOT RUN: ${title}: ${missing}.`])),
    ...rows
      .filter(({ serverUs }) => serverUs > 0)
      .map((row) => `${row.title}: the server takes ${fixed(row.serverUs, 1)} µs of a call beside.`),
    ...rows.flatMap(unsettled),
    `Driver: at most ${percent(driverShare)} of a core (void above 80 %). Others had ${percent(othersShare)} of the machine (void above 10 %). Answers were counted at both ends.`,
    ...voids.map((reason) => `VOID: ${reason}`),
  ].join('\n')
}
