// Builds the image and brings up both sets of docker-compose.yml as docs/deployment.md does, with secrets to be
// thrown away; asks each through its published ports, and takes it down with all it kept. Needs Docker (or Podman)
// with Compose 2, the ports of that file, and the base image (NODE_IMAGE names another than the Dockerfile's).
// Without an engine, or a way to the registry, it says that it was NOT RUN and ends well, as the tests of the files
// themselves run everywhere. Everything else fails.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContainerEngine, Outside } from './container-engine.mjs'
import { checkContainers, checkKeys, checkProduction, checkSandbox, checkStop } from './test-image-checks.mjs'
import { composeFile, ComposeSet, foreignImages, prepare } from './test-image-sets.mjs'

const { NODE_IMAGE } = process.env
const BASE_IMAGE = NODE_IMAGE || /^ARG NODE_IMAGE=(\S+)$/m.exec(readFileSync('Dockerfile', 'utf8'))?.[1]

const CHECKS = {
  sandbox: async (set) => {
    const url = await set.url('sandbox', '8080')
    await checkSandbox(url)
    await checkStop(set, 'sandbox', url)
  },
  production: async (set) => {
    const operators = {
      operatorsUrl: await set.url('balancer', '8081'),
      adminKey: set.secret('gateway_admin_key'),
    }
    await checkProduction({
      ...operators,
      callersUrl: await set.url('balancer', '8080'),
      prometheusUrl: await set.url('prometheus', '9090'),
      key: set.secret('team_a_key'),
    })
    await checkKeys(set, operators)
  },
}

/** Brings a set up, looks at it, and leaves nothing behind. */
async function runSet(engine, compose, profile, folder) {
  await engine.fetch(foreignImages(composeFile(), profile, BASE_IMAGE))
  const set = new ComposeSet(engine, compose, { profile, folder })
  try {
    await set.up()
    await checkContainers(set)
    await CHECKS[profile](set)
  } catch (error) {
    // What went wrong first is what is to be read.
    await set.down().catch(({ message }) => console.error(message))
    throw error
  }
  await set.down()
}

async function runAll() {
  const engine = await ContainerEngine.find()
  const compose = await engine.compose()
  const folder = mkdtempSync(join(tmpdir(), 'gateway-test-image-'))
  try {
    await prepare(folder, NODE_IMAGE)
    for (const profile of Object.keys(CHECKS))
      await orNotRun(`docker-compose.yml, ${profile}`, async () => {
        await runSet(engine, compose, profile, folder)
        console.log(`docker-compose.yml, ${profile}: built on ${BASE_IMAGE}, healthy, without rights, and it served.`)
      })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function orNotRun(name, work) {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof Outside)) throw error
    console.log(`NOT RUN: ${name}: ${error.message}.`)
  }
}

// The command that runs hears it as well and fails; what is up is then taken down.
process.on('SIGINT', () => undefined)
await orNotRun('the image and docker-compose.yml', runAll).catch(({ message }) => {
  console.error(message)
  process.exitCode = 1
})
