// What must be true of a set of docker-compose.yml that is up: through its published ports, and in its containers.
import { deepStrictEqual, strictEqual as equal, match, notStrictEqual, ok } from 'node:assert'
import { composeFile } from './test-image-sets.mjs'

const CHAT = '/v1/chat/completions'
const ANSWER_MS = 60_000

/** Prometheus asks every 15 seconds. */
const SCRAPED_MS = 90_000

const SANDBOX_KEY = 'sandbox-demo-key'

/** The request that runs while its container receives SIGTERM. */
const STREAM_ID = 'runs-at-the-stop'

/** A piece each 50 ms: three seconds, so that the signal comes within. Faster, all of it would be in buffers by then. */
const SLOW_STREAM = '#slow #chunks=60'

/** The log lines of the gateway at SIGTERM and at the end of a request. */
const OVER_AFTER_STOP = new RegExp(`"draining"[^]*"requestId":"${STREAM_ID}"`)

/** Run by Node in the container: what docker-compose.yml asks for is what the process has. */
const INSIDE = `
  const { readFileSync, writeFileSync } = require('node:fs')
  let writing = 'written'
  try { writeFileSync('/app/x', '') } catch ({ code }) { writing = code }
  JSON.stringify({
    user: process.getuid(),
    capabilities: /^CapEff:\\s+(\\w+)$/m.exec(readFileSync('/proc/1/status', 'utf8'))[1],
    memoryBytes: process.constrainedMemory(),
    writing,
  })`

async function ask(url, { key, body, type = 'application/json', id, status = 200 }) {
  const headers = {
    authorization: `Bearer ${key}`,
    ...(body !== undefined && { 'content-type': type }),
    ...(id !== undefined && { 'x-request-id': id }),
  }
  const method = body === undefined ? 'GET' : 'POST'
  const answer = await fetch(url, { method, headers, body, signal: globalThis.AbortSignal.timeout(ANSWER_MS) })
  equal(answer.status, status, `${url} answered ${answer.status}`)
  return answer
}

const chat = (content, stream) => JSON.stringify({ model: 'gpt-4o', stream, messages: [{ role: 'user', content }] })

/** Of `3G` or `512M`, as docker-compose.yml has them. */
function bytesOf(size) {
  const [, count, unit] = /^(\d+)([MG])$/.exec(size) ?? []
  return Number(count) * (unit === 'G' ? 2 ** 30 : 2 ** 20)
}

/** Every container is healthy, is not root's, and cannot write to its image; the gateways also say so themselves. */
export async function checkContainers(set) {
  const { services } = composeFile()
  for (const name of set.services) {
    const { State, HostConfig, Config } = await set.container(name)
    equal(State.Health?.Status, 'healthy', `the health of ${name}`)
    equal(HostConfig.ReadonlyRootfs, true, `the file system of ${name} is read-only`)
    for (const root of ['', '0', '0:0', 'root']) notStrictEqual(Config.User, root, `the user of ${name}`)
    if (services[name].image !== services.sandbox.image) continue
    const memoryBytes = bytesOf(services[name].deploy.resources.limits.memory)
    const rights = { user: 1000, capabilities: '0'.repeat(16), memoryBytes, writing: 'EROFS' }
    const seen = await set.inside(name, INSIDE)
    deepStrictEqual(seen, rights, `what the process of ${name} may do: ${JSON.stringify(seen)}`)
  }
}

export async function checkSandbox(url) {
  const key = SANDBOX_KEY
  match(await (await ask(`${url}${CHAT}`, { key, body: chat('Hello', false) })).text(), /You said: Hello/)
  // Read in a process of its own, which prlimit starts.
  const page = { key, body: '<h1>A page</h1><p>and its text</p>', type: 'text/html' }
  match((await (await ask(`${url}/v1/document/parse`, page)).json()).data.markdown, /# A page/)
  // The embedded store, in the volume.
  const video = JSON.stringify({ model_name: 'vidgen-v1-6', prompt: 'A lake' })
  equal((await (await ask(`${url}/vidgen/v1/videos/text2video`, { key, body: video })).json()).code, 0, 'a task')
}

/** A stream in progress at SIGTERM is not cut. */
export async function checkStop(set, service, url) {
  const stream = await ask(`${url}${CHAT}`, { key: SANDBOX_KEY, body: chat(SLOW_STREAM, true), id: STREAM_ID })
  const read = stream.text().catch(({ message }) => message)
  const [text] = await Promise.all([read, set.run('stop', service)])
  match(text, /data: \[DONE\]/, `a stream was cut when ${service} was told to stop: ${text.slice(-200)}`)
  const log = await set.run('logs', '--no-color', service)
  match(log, OVER_AFTER_STOP, `the stream was over before ${service} was told to stop:\n${log}`)
  const { State } = await set.container(service)
  equal(State.ExitCode, 0, `the exit code of ${service}`)
  equal(State.OOMKilled, false, `${service} was killed for its memory`)
}

/** Everything that the set is made of has a part in one of these answers. */
export async function checkProduction({ callersUrl, operatorsUrl, prometheusUrl, key, adminKey, scrapedMs }) {
  // PostgreSQL, as every replica opens it.
  equal((await (await ask(`${callersUrl}/health/ready`, { key })).json()).status, 'ready')
  const stream = await ask(`${callersUrl}${CHAT}`, { key, body: chat('Hello', true) })
  equal(stream.headers.get('x-gateway-channel'), 'p1-main')
  const events = (await stream.text()).split('\n\n')
  ok(events.length > 3 && events.includes('data: [DONE]'), `no whole stream: ${events.join('\n')}`)
  // Redis.
  equal((await (await ask(`${callersUrl}/v1/limits`, { key })).json()).shared, true, 'limits are counted together')
  await ask(`${operatorsUrl}/admin/v1/keys`, { key: adminKey })
  await ask(`${callersUrl}/admin/v1/keys`, { key: adminKey, status: 404 })
  await checkScrapes(prometheusUrl, scrapedMs ?? SCRAPED_MS)
}

/** As docs/keys.md has it, for the image has no npm script; what it makes is in the store of all gateways. */
export async function checkKeys(set, { operatorsUrl, adminKey }) {
  const words = ['node', 'dist/keys-cli.js', 'create', '--id', 'team-b', '--quiet']
  const key = await set.run('exec', '-T', 'gateway-1', ...words)
  const { hint } = await (await ask(`${operatorsUrl}/admin/v1/keys/team-b`, { key: adminKey })).json()
  ok(/^sk-gw-\S+$/.test(key) && key.startsWith(hint), `the key that was made in a container begins with ${hint}`)
}

/** Prometheus hears of both replicas and of the balancer. */
async function checkScrapes(prometheusUrl, scrapedMs) {
  const expected = { 'balancer:8405': '1', 'gateway-1:9090': '1', 'gateway-2:9090': '1' }
  const endsAtMs = performance.now() + scrapedMs
  for (;;) {
    const { data } = await (await ask(`${prometheusUrl}/api/v1/query?query=up`, { key: 'none' })).json()
    const up = Object.fromEntries(data.result.map(({ metric, value }) => [metric.instance, value[1]]))
    if (Object.keys(expected).every((name) => up[name] === '1')) return
    if (performance.now() > endsAtMs)
      return deepStrictEqual(up, expected, `what Prometheus reaches: ${JSON.stringify(up)}`)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}
