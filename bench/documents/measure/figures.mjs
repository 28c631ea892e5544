import { median, quantile } from '../../statistics.mjs'

/** A figure of a corpus: {name, value, unit?, bar?, met?}; a bar is {least} or {most}. NaN has not met any. */
export function figure(name, value, { unit = '', ...bar } = {}) {
  const hasBar = bar.least !== undefined || bar.most !== undefined
  const met = hasBar ? (bar.least === undefined ? value <= bar.most : value >= bar.least) : undefined
  return { name, value, unit, ...(hasBar && { bar, met }) }
}

/**
 * How long reading took, from documents of {pages?, ms, cpuMs}. Bars are on the time of the processor, which does not grow
 * when the machine has other work to do.
 */
export function timeFigures(documents, bars = {}) {
  const perPage = (name) => documents.map(({ pages = 1, [name]: ms = NaN }) => ms / pages)
  return [
    figure('median CPU ms per page', median(perPage('cpuMs')), bars),
    figure('p95 CPU ms per page', quantile(perPage('cpuMs'), 0.95)),
    figure('median ms per page by the clock', median(perPage('ms'))),
    figure('p95 ms per page by the clock', quantile(perPage('ms'), 0.95)),
  ]
}

export const memoryFigure = (reader) => figure('peak RSS of the process', reader.peakBytes / 1_000_000, { unit: 'MB' })
