const digits = (value) => (Number.isInteger(value) ? 0 : Math.abs(value) >= 20 ? 1 : 3)
const shown = (value, unit) => `${Number.isNaN(value) ? '–' : value.toFixed(digits(value))}${unit ? ` ${unit}` : ''}`
const barOf = ({ bar }) => (bar ? (bar.least === undefined ? `<= ${bar.most}` : `>= ${bar.least}`) : '')
const barState = ({ met }) => (met === undefined ? '' : met ? 'met' : 'NOT MET')

function table(figures) {
  const rows = figures.map((one) => [one.name, shown(one.value, one.unit), barOf(one), barState(one)])
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column].length)))
  return rows
    .map(([name, value, bar, met]) =>
      `  ${name.padEnd(widths[0])}  ${value.padStart(widths[1])}  ${bar.padStart(widths[2])}  ${met}`.trimEnd(),
    )
    .join('\n')
}

/** The results of one corpus as text for a terminal. */
export function corpusReport({ title, isAbsent, figures, documents }) {
  if (isAbsent) return `\n${title}: absent, nothing measured`
  const failures = documents.flatMap(({ name, failure }) => (failure ? [`  FAILED ${name}: ${failure.trim()}`] : []))
  return [`\n${title}`, table(figures), ...failures].join('\n')
}

/** The bars of our own corpora that are missed: one line each. */
export const missedOwnBars = (results) =>
  results.flatMap(({ title, isOwn, figures, documents }) =>
    isOwn
      ? [
          ...figures
            .filter(({ met }) => met === false)
            .map(({ name, value }) => `${title}: ${name} ${value.toFixed(3)}`),
          ...documents.filter(({ failure }) => failure).map(({ name }) => `${title}: ${name} was not read`),
        ]
      : [],
  )
