// Loaded before a gateway: writes down what keeps its event loop busy, and the memory it holds, for the run that samples it
// from outside.
import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const file = process.env.SOAK_RESOURCES
const EVERY_MS = 1000
/** Collecting takes some ten milliseconds. */
const COLLECTED_EVERY = 10

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc')
setFlagsFromString('--no-expose-gc')

let written = 0
let held

/**
 * What is left when all garbage is collected. The engine does that whenever it sees fit, after many minutes where memory is
 * plenty; until then memory in use cannot be distinguished from garbage.
 */
function lookAtMemory() {
  collectGarbage()
  const { rss, heapUsed, external } = process.memoryUsage()
  return { residentBytes: rss, heapBytes: heapUsed + external }
}

const write = () => {
  if (written++ % COLLECTED_EVERY === 0) held = lookAtMemory()
  const counts = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  writeFileSync(file, JSON.stringify({ writtenAtMs: Date.now(), counts, held }))
}
setInterval(write, EVERY_MS).unref()
