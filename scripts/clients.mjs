// `npm run clients`: every example of examples/clients against a fresh sandbox, with the libraries that its folder pins, as a
// table client × feature.
//   npm run clients -- --only python/openai,go    those whose path begins so
// CLIENTS_CACHE names a folder that keeps what is installed; without it a new one is made and removed. What this machine lacks
// is NOT RUN, with the reason; an example that ran and failed ends the command with 1.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { addressOf } from './gateway-address.mjs'

const EXAMPLES = resolve('examples/clients')
const MAIN = resolve('dist/main.js')
const INSTALL_MS = 600_000
const RUN_MS = 180_000
/** What package managers say without a network, and Python without the parts that its packages in distributions leave out. */
const OFFLINE =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|name resolution|NewConnectionError|no such host|i\/o timeout|ProxyError|Tunnel connection failed|HTTP error (?:407|5\d\d)|timed out/i
const NO_VENV = /ensurepip is not available|No module named venv/
const MINIMUM_PYTHON = [3, 11]

const LATE = 'did not end within'
const isLate = (failure) => failure.startsWith(LATE)

/** This machine lacks something: no fault of the example. */
class NotHere extends Error {}

/** Ended with the command: examples are groups of processes of their own, which a Ctrl+C does not reach. */
const endings = new Set()
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const end of endings) end()
    process.exit(130)
  })
}

/** Runs a program to its end; after the deadline it is killed, with all that it has started. */
async function execute(command, args, { cwd, env, deadlineMs }) {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  let failure
  const end = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL')
  endings.add(end)
  const timer = setTimeout(() => {
    failure = `${LATE} ${deadlineMs / 1000} s`
    end()
  }, deadlineMs)
  try {
    const [code] = await once(child, 'close')
    if (code !== 0) failure ??= `ended with ${code}`
    return { output, failure }
  } catch (error) {
    throw error.code === 'ENOENT' ? new NotHere(`${command} is not installed`) : error
  } finally {
    clearTimeout(timer)
    endings.delete(end)
  }
}

async function install(command, args, cwd, env = {}) {
  const options = { cwd, env: { ...process.env, ...env }, deadlineMs: INSTALL_MS }
  const { output, failure } = await execute(command, args, options)
  if (failure === undefined) return output
  if (OFFLINE.test(output) || isLate(failure)) throw new NotHere('the registry of its packages cannot be reached')
  if (NO_VENV.test(output)) throw new NotHere('python3 has no venv')
  throw new Error(`${command} ${args.join(' ')} ${failure}:\n${output}`)
}

/** What several examples share is installed one time, or fails one time. */
const installed = new Map()
function installOnce(name, make) {
  if (!installed.has(name)) installed.set(name, make())
  return installed.get(name)
}

/** Of the requirements files with a longer name, the one whose end begins the name of the example; else the common one. */
async function requirementsOf(file) {
  const names = await readdir(join(EXAMPLES, 'python'))
  const own = names.filter((name) => file.startsWith(/^requirements-(.+)\.txt$/.exec(name)?.[1] ?? '/'))
  return own.sort((a, b) => b.length - a.length)[0] ?? 'requirements.txt'
}

async function environmentFor(requirements, cache) {
  const folder = join(cache, 'python', basename(requirements, '.txt'))
  const version = /(\d+)\.(\d+)/.exec(await install('python3', ['--version'], EXAMPLES)) ?? []
  const [major, minor] = version.slice(1).map(Number)
  if (major !== MINIMUM_PYTHON[0] || minor < MINIMUM_PYTHON[1]) throw new NotHere(`python3 is ${version[0]}, not 3.11`)
  await install('python3', ['-m', 'venv', folder], EXAMPLES)
  const python = join(folder, 'bin/python')
  // What is not imported need not be compiled: half the time.
  const options = ['--quiet', '--disable-pip-version-check', '--no-input', '--no-compile', '--retries=2']
  await install(python, ['-m', 'pip', 'install', ...options, '-r', requirements], join(EXAMPLES, 'python'))
  return python
}

/** How each language finds its examples, and gets one ready: the command that runs it. */
const LANGUAGES = {
  python: {
    exampleIn: (name) => /^([a-z]\w+)\.py$/.exec(name)?.[1],
    sourcesOf: (example) => [`${example}.py`],
    async prepare(example, cache) {
      const requirements = await requirementsOf(example)
      const python = await installOnce(requirements, () => environmentFor(requirements, cache))
      return [python, [join(EXAMPLES, 'python', `${example}.py`)]]
    },
  },
  javascript: {
    exampleIn: (name) => /^([a-z].+)\.mjs$/.exec(name)?.[1],
    sourcesOf: (example) => [`${example}.mjs`],
    async prepare(example, cache) {
      const folder = join(cache, 'javascript')
      await installOnce(folder, async () => {
        // Modules look for packages beside themselves.
        await cp(join(EXAMPLES, 'javascript'), folder, { recursive: true })
        await install('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts'], folder)
      })
      return [process.execPath, [join(folder, `${example}.mjs`)]]
    },
  },
  go: {
    exampleIn: (name) => /^([a-z]\w+)$/.exec(name)?.[1],
    sourcesOf: async (example) => (await readdir(join(EXAMPLES, 'go', example))).map((name) => join(example, name)),
    async prepare(example, cache) {
      const program = join(cache, 'go/bin', example)
      const places = { GOMODCACHE: join(cache, 'go/modules'), GOCACHE: join(cache, 'go/build') }
      const env = { ...places, GOFLAGS: '-modcacherw -mod=readonly' }
      await install('go', ['build', '-o', program, `./${example}`], join(EXAMPLES, 'go'), env)
      return [program, []]
    },
  },
}

/** `print("ok chat")`, `console.log('ok chat')`, and of Go `check("chat", …)`. */
const FEATURE = /(?:["']ok |check\(")([a-z-]+)["']/g

/** All examples, or those asked for; each with the features that its sources say. */
async function examples(only) {
  const found = []
  for (const [language, { exampleIn, sourcesOf }] of Object.entries(LANGUAGES)) {
    for (const entry of (await readdir(join(EXAMPLES, language))).sort()) {
      const example = exampleIn(entry)
      if (example === undefined) continue
      const name = `${language}/${example}`
      if (only.length > 0 && !only.some((beginning) => name.startsWith(beginning))) continue
      const sources = (await sourcesOf(example)).map((source) => readFile(join(EXAMPLES, language, source), 'utf8'))
      const text = (await Promise.all(sources)).join('\n')
      found.push({ language, example, name, features: featuresIn(text, FEATURE) })
    }
  }
  return found
}

const featuresIn = (text, pattern) => [...new Set([...text.matchAll(pattern)].map(([, feature]) => feature))]

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

/** A gateway without a configuration, in an empty folder, on a free port; it translates, so that every model is at each endpoint. */
async function startSandbox(folder) {
  const { PATH } = process.env
  const env = { PATH, HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', TRANSLATE: 'on' }
  const child = spawn(process.execPath, [MAIN], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const end = () => child.kill('SIGTERM')
  endings.add(end)
  const close = async () => {
    endings.delete(end)
    if (child.exitCode === null && end()) await once(child, 'exit')
  }
  try {
    return { url: await addressOf(child), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** What became of an example: the features that it reported, and what went wrong. */
async function run({ language, example }, sandboxUrl, cache) {
  try {
    const [command, args] = await LANGUAGES[language].prepare(example, cache)
    const url = await sandboxUrl()
    const { PATH, HOME, TMPDIR = tmpdir() } = process.env
    const env = {
      // No variables of the caller's: base URLs, keys and proxies of its own would lead elsewhere.
      ...{ PATH, HOME, TMPDIR, GATEWAY_URL: url, GATEWAY_KEY: 'sandbox-demo-key', TRANSLATE: 'on' },
      CALLBACK_PORT: String(await freePort()),
      // litellm would ask the internet for prices at each start.
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    }
    const { output, failure } = await execute(command, args, { cwd: cache, env, deadlineMs: RUN_MS })
    return { passed: featuresIn(output, /^ok ([a-z-]+)$/gm), failure, output }
  } catch (error) {
    if (error instanceof NotHere) return { passed: [], notRun: error.message }
    return { passed: [], failure: 'could not be started', output: error.message }
  }
}

/** ✓, ✗ for what failed, · for what was not reached after that, and nothing where the example has no such feature. */
function cellsOf({ features, passed, failure, notRun }, columns) {
  const missing = features.filter((feature) => !passed.includes(feature))
  return columns.map((column) => {
    if (passed.includes(column)) return '✓'
    if (!features.includes(column) || notRun !== undefined) return ''
    return column === missing[0] && failure !== undefined ? '✗' : '·'
  })
}

function table(results) {
  const columns = [...new Set(results.flatMap(({ features }) => features))]
  const rows = results.map((result) => [
    result.name,
    ...cellsOf(result, columns),
    result.notRun === undefined ? (result.failure ?? '') : `NOT RUN: ${result.notRun}`,
  ])
  const head = ['Client', ...columns, '']
  return [head, head.map(() => '-'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

const only = process.argv.flatMap((word, at, words) => (words[at - 1] === '--only' ? word.split(',') : []))
const chosen = await examples(only)
if (chosen.length === 0) throw new Error(`No example begins with ${only.join(' or ')}.`)

const { CLIENTS_CACHE } = process.env
const scratch = await mkdtemp(join(tmpdir(), 'gateway-clients-'))
const cache = resolve(CLIENTS_CACHE ?? join(scratch, 'cache'))
const results = []
/** Started for the first example that can be run. */
let sandbox
const sandboxUrl = async () => (await (sandbox ??= startSandbox(join(scratch, 'sandbox')))).url
try {
  for (const folder of [cache, join(scratch, 'sandbox')]) await mkdir(folder, { recursive: true })
  for (const each of chosen) {
    console.error(each.name)
    const outcome = await run(each, sandboxUrl, cache)
    // An example that ends well without a feature that its source names has failed as well.
    const left = each.features.filter((feature) => !outcome.passed.includes(feature))
    if (outcome.notRun === undefined && left.length > 0) outcome.failure ??= `says nothing of ${left.join(', ')}`
    if (outcome.failure !== undefined) console.error(`${outcome.output?.slice(-4000)}\n${each.name} ${outcome.failure}`)
    results.push({ ...each, ...outcome })
  }
} finally {
  // Why it did not start, its examples have said.
  await sandbox?.then(({ close }) => close()).catch(() => undefined)
  await rm(scratch, { recursive: true, force: true })
}
console.log(table(results))
const failed = results.filter(({ failure }) => failure !== undefined)
const notRun = results.filter((result) => result.notRun !== undefined)
console.log(
  `\nClients: ${results.length - failed.length - notRun.length} passed, ${failed.length} failed, ${notRun.length} not run`,
)
process.exitCode = failed.length === 0 ? 0 : 1
