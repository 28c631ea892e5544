/** The engine in a process of its own: a document in, what was read of it and how long that took out. */
const [enginePath] = process.argv.slice(2)
const { readDocument } = await import(enginePath)
// A promise that a library forgot says nothing about the document: the gateway's engine lives on as well.
process.on('unhandledRejection', () => undefined)

const LIMITS = { pages: 500, decodedBytes: 25_000_000 }

async function read({ bytes, ...claims }) {
  const start = performance.now()
  const cpuBefore = process.cpuUsage()
  const taken = () => {
    const { user, system } = process.cpuUsage(cpuBefore)
    return { ms: performance.now() - start, cpuMs: (user + system) / 1000 }
  }
  try {
    const output = await readDocument({ bytes: new Uint8Array(bytes), ...claims }, LIMITS)
    return { ...taken(), output }
  } catch (error) {
    return {
      ...taken(),
      ...(error.name === 'EngineFault' ? { fault: error.fault } : { error: error.stack ?? String(error) }),
    }
  }
}

process.on('message', async (input) => {
  const answer = await read(input)
  process.send({ ...answer, peakBytes: process.resourceUsage().maxRSS * 1024 })
})
process.send('ready')
