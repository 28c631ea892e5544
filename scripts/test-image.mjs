// Builds the image and runs it as docker-compose.yml does: read-only, without rights, within a limit of memory. Needs Docker or
// Podman and the base image (NODE_IMAGE names another than the Dockerfile's); without them it says so and ends well, as the
// tests of the files themselves run everywhere.
import { strictEqual as equal, match, ok } from 'node:assert'
import { readFileSync } from 'node:fs'
import { ContainerEngine } from './container-engine.mjs'

const IMAGE = 'multi-model-gateway:test'
const MEMORY_BYTES = 2 ** 30
const PATIENCE_MS = 60_000
/** docker-compose.yml: stop_grace_period of the sandbox. */
const STOP_SECONDS = '45'
const DEFAULT_BASE = /^ARG NODE_IMAGE=(\S+)$/m.exec(readFileSync('Dockerfile', 'utf8'))?.[1]
const BASE = process.env.NODE_IMAGE || DEFAULT_BASE

const HEADERS = { authorization: 'Bearer sandbox-demo-key', 'content-type': 'application/json' }

async function becomesHealthy(engine, container) {
  const endsAtMs = performance.now() + PATIENCE_MS
  while (!engine.isHealthy(container)) {
    ok(performance.now() < endsAtMs, `the container is not healthy:\n${engine.run('logs', container)}`)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** What Compose asks for is what the process has. */
function checkRights(engine, container) {
  const inside = (script) => engine.run('exec', container, 'node', '-p', script)
  equal(inside('process.getuid()'), '1000', 'the user')
  match(inside('require("fs").readFileSync("/proc/1/status", "utf8")'), /^CapEff:\s+0{16}$/m, 'no capability')
  equal(inside('process.constrainedMemory()'), String(MEMORY_BYTES), 'the limit of memory')
  equal(inside('try { require("fs").writeFileSync("/app/x", "") } catch ({ code }) { code }'), 'EROFS', 'read-only')
}

async function post(address, path, body, headers = HEADERS) {
  const answer = await fetch(`http://${address}${path}`, { method: 'POST', headers, body })
  ok(answer.ok, `${path} answered ${answer.status}`)
  return answer
}

const chat = (content, stream) => JSON.stringify({ model: 'gpt-4o', stream, messages: [{ role: 'user', content }] })

async function checkService(address) {
  match(await (await post(address, '/v1/chat/completions', chat('Hello', false))).text(), /You said: Hello/)
  // Read in a process of its own, which prlimit starts.
  const page = { ...HEADERS, 'content-type': 'text/html' }
  const document = await post(address, '/v1/document/parse', '<h1>A page</h1><p>and its text</p>', page)
  match((await document.json()).data.markdown, /# A page/)
  // The embedded store, in the volume.
  const video = JSON.stringify({ model_name: 'vidgen-v1-6', prompt: 'A lake' })
  equal((await (await post(address, '/vidgen/v1/videos/text2video', video)).json()).code, 0, 'a task')
}

/** A stream that runs when the container is told to stop is not cut. */
async function checkStop(engine, container, address) {
  const stream = await post(address, '/v1/chat/completions', chat('#chunks=100', true))
  const text = stream.text()
  engine.run('stop', '--time', STOP_SECONDS, container)
  match(await text, /data: \[DONE\]/)
  equal(engine.inspect(container, '.State.ExitCode'), '0', 'the exit code')
  equal(engine.inspect(container, '.State.OOMKilled'), 'false', 'killed for its memory')
}

async function run(engine) {
  engine.build(IMAGE, ['--build-arg', `NODE_IMAGE=${BASE}`])
  const rights = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--tmpfs', '/tmp']
  const room = ['--memory', String(MEMORY_BYTES), '--volume', '/app/data', '--publish', '127.0.0.1::8080']
  const container = engine.run('run', '--detach', ...rights, ...room, IMAGE)
  try {
    await becomesHealthy(engine, container)
    checkRights(engine, container)
    const address = engine.run('port', container, '8080')
    await checkService(address)
    await checkStop(engine, container, address)
    console.log(
      `The image was built on ${BASE} and run by ${engine.name}: it was healthy, had no rights, served, and drained.`,
    )
  } finally {
    engine.run('rm', '--force', '--volumes', container)
  }
}

const engine = ContainerEngine.find()
const fault = engine === undefined ? 'there is neither Docker nor Podman here' : engine.faultOf(BASE)
if (fault === undefined) {
  await run(engine).catch(({ message }) => {
    console.error(message)
    process.exitCode = 1
  })
} else console.log(`NOT RUN: ${fault}. So the image was neither built nor started.`)
