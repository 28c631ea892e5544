/**
 * Gradient boosting of regression trees with logistic loss, soft labels and weights, on values put into bins. Small enough
 * to be read, fast enough for half a million rows.
 */
const DEFAULTS = {
  trees: 100,
  depth: 5,
  rate: 0.12,
  leastWeight: 0.5,
  ridge: 0.5,
  columnShare: 0.4,
  rowShare: 0.6,
  bins: 48,
}
const SAMPLE = 50_000
const LEAST_ROWS = 20
const LEAST_GAIN_SHARE = 1e-6

/**
 * `rows` are arrays of numbers, `labels` shares from 0 to 1, `weights` numbers above 0. Gives the logarithm of the odds
 * before anything is known, and trees: a number, or [feature, threshold, below, otherwise].
 */
export function boost(rows, labels, weights, options = {}) {
  const settings = { ...DEFAULTS, ...options }
  const random = randomOf(7)
  const columns = rows[0].map((_, feature) => binned(rows, feature, settings.bins))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const positive = labels.reduce((sum, label, row) => sum + label * weights[row], 0)
  const base = Math.log(positive / (total - positive))
  const odds = new Float64Array(rows.length).fill(base)
  const state = { columns, odds, gradients: new Float64Array(rows.length), curvatures: new Float64Array(rows.length) }
  const trees = Array.from({ length: settings.trees }, () => {
    measure(state, labels, weights)
    const used = columns.filter(() => random() < settings.columnShare)
    const sample = Int32Array.from(rows.keys()).filter(() => random() < settings.rowShare)
    const tree = grow(state, used, sample, { ...settings, leastGain: LEAST_GAIN_SHARE * total }, settings.depth)
    for (let row = 0; row < odds.length; row++) odds[row] += valueOf(tree, row)
    return written(tree)
  })
  return { base, trees }
}

function measure({ odds, gradients, curvatures }, labels, weights) {
  for (let row = 0; row < odds.length; row++) {
    const chance = 1 / (1 + Math.exp(-odds[row]))
    gradients[row] = weights[row] * (chance - labels[row])
    curvatures[row] = weights[row] * Math.max(chance * (1 - chance), 1e-4)
  }
}

function grow(state, columns, rows, settings, depth) {
  let [gradient, curvature] = [0, 0]
  for (const row of rows) {
    gradient += state.gradients[row]
    curvature += state.curvatures[row]
  }
  const leaf = { value: (-settings.rate * gradient) / (curvature + settings.ridge) }
  if (depth === 0 || curvature < 2 * settings.leastWeight || rows.length < LEAST_ROWS) return leaf
  const split = bestSplit(state, columns, rows, settings, gradient, curvature)
  if (split === undefined) return leaf
  const { column, bin } = split
  return {
    column,
    bin,
    below: grow(
      state,
      columns,
      rows.filter((row) => column.bins[row] <= bin),
      settings,
      depth - 1,
    ),
    otherwise: grow(
      state,
      columns,
      rows.filter((row) => column.bins[row] > bin),
      settings,
      depth - 1,
    ),
  }
}

function bestSplit({ gradients, curvatures }, columns, rows, settings, gradient, curvature) {
  const { ridge, leastWeight } = settings
  const whole = gradient ** 2 / (curvature + ridge)
  let best
  let bestGain = settings.leastGain
  for (const column of columns) {
    const sums = new Float64Array(2 * (column.cuts.length + 1))
    for (const row of rows) {
      const at = 2 * column.bins[row]
      sums[at] += gradients[row]
      sums[at + 1] += curvatures[row]
    }
    let [left, leftCurvature] = [0, 0]
    for (let bin = 0; bin < column.cuts.length; bin++) {
      left += sums[2 * bin]
      leftCurvature += sums[2 * bin + 1]
      const rightCurvature = curvature - leftCurvature
      if (leftCurvature < leastWeight || rightCurvature < leastWeight) continue
      const gain = left ** 2 / (leftCurvature + ridge) + (gradient - left) ** 2 / (rightCurvature + ridge) - whole
      if (gain > bestGain) [best, bestGain] = [{ column, bin }, gain]
    }
  }
  return best
}

/** The bin of each row is the number of cuts that its value reaches. */
function binned(rows, feature, bins) {
  const step = Math.max(1, Math.floor(rows.length / SAMPLE))
  const sample = rows.filter((_, row) => row % step === 0).map((row) => row[feature])
  sample.sort((one, other) => one - other)
  const distinct = [...new Set(sample)]
  const quantiles = Array.from({ length: bins - 1 }, (_, at) => sample[Math.floor(((at + 1) * sample.length) / bins)])
  const cuts = distinct.length <= bins ? distinct.slice(1) : [...new Set(quantiles)].filter((cut) => cut > sample[0])
  return { feature, cuts, bins: Uint8Array.from(rows, (row) => reached(cuts, row[feature])) }
}

function reached(cuts, value) {
  let [low, high] = [0, cuts.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (cuts[middle] <= value) low = middle + 1
    else high = middle
  }
  return low
}

function valueOf(tree, row) {
  let node = tree
  while (node.column !== undefined) node = node.column.bins[row] <= node.bin ? node.below : node.otherwise
  return node.value
}

const written = (node) =>
  node.column === undefined
    ? node.value
    : [node.column.feature, node.column.cuts[node.bin], written(node.below), written(node.otherwise)]

/** Numbers in [0, 1) that are the same in every run (a linear congruential generator). */
function randomOf(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
