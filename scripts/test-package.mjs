// Packs the gateway as `npm pack` does, starts the package with npx in an empty folder, and asks it for a chat, a document, and its
// version. Needs the registry, from which npx fetches the dependencies.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addressOf } from './gateway-address.mjs'

const START_LIMIT_MS = 300_000
const HEADERS = { authorization: 'Bearer sandbox-demo-key' }

const folder = mkdtempSync(join(tmpdir(), 'gateway-package-'))

function check(what, isTrue) {
  if (!isTrue) throw new Error(`The package fails: ${what}`)
  console.log(`✔ ${what}`)
}

async function json(response) {
  if (response.ok) return response.json()
  throw new Error(`${response.status}: ${await response.text()}`)
}

/** Of the processes that run the package. */
function commandLines() {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return processes.map(commandLineOf).filter((line) => line.includes(folder))
}

function commandLineOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return '' // It has ended.
  }
}

async function main() {
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', folder], { encoding: 'utf8' }),
  )
  const npx = ['--yes', '--cache', join(folder, 'cache'), `./${filename}`]
  const version = execFileSync('npx', [...npx, '--version'], { cwd: folder, encoding: 'utf8' }).trim()
  check(`is ${filename} and says so`, filename === `multi-model-gateway-${version}.tgz`)
  const child = spawn('npx', npx, {
    cwd: folder,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  try {
    const address = await addressOf(child, START_LIMIT_MS)
    check('starts a sandbox in an empty folder', true)
    if (process.execve !== undefined && process.platform === 'linux')
      check(
        'has more memory for new objects',
        commandLines().some((line) => line.includes('--max-semi-space-size=64')),
      )
    const chat = await fetch(`${address}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...HEADERS, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello!' }] }),
    }).then(json)
    check('chats', chat.choices[0].message.content === 'You said: Hello!')
    const form = new FormData()
    form.append('file', new Blob(['<h1>Title</h1><p>Text.</p>']), 'page.html')
    const parsed = await fetch(`${address}/v1/document/parse`, { method: 'POST', headers: HEADERS, body: form }).then(
      json,
    )
    check('reads documents', parsed.data.markdown === '# Title\n\nText.\n')
  } finally {
    // Its output ends with the last of npx and the gateway, which writes to its folder until then.
    const closed = new Promise((resolve) => child.once('close', resolve))
    child.stdout.resume()
    process.kill(-child.pid, 'SIGTERM')
    await closed
  }
}

try {
  await main()
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
