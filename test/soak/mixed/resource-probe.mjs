// Loaded before a gateway: writes down what keeps its event loop busy, for whoever watches it from outside.
import { writeFileSync } from 'node:fs'

const file = process.env.SOAK_RESOURCES
const EVERY_MS = 1000

const write = () => {
  const counts = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  writeFileSync(file, JSON.stringify({ writtenAtMs: Date.now(), counts, heapBytes: process.memoryUsage().heapUsed }))
}
setInterval(write, EVERY_MS).unref()
