// Makes the empty embedded store that the gateway unpacks at its first use: making one takes two seconds of a processor and 800 MB.
import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { sql } from 'kysely'
import { packTar } from 'modern-tar/fs'

const NAME = 'empty-store.tar.br'
const CACHE = 'node_modules/.cache/multi-model-gateway'
/** The highest is twenty times as slow, for an eighth less. */
const COMPRESSION = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 }

/** Only for `create database`, which the gateway never says: two thirds of the files, each of which is synced at the first use. */
const WITHOUT_TEMPLATES = [
  'update pg_database set datistemplate = false, datallowconn = true',
  'drop database template0',
  'drop database template1',
]
/** What is written from here on goes to a file of zeros, and the one before, full of how the store was made, is removed. */
const WITH_NEW_LOG = ['set wal_recycle = off', 'select pg_switch_wal()', 'checkpoint']

/** What a store depends on: PGlite, how its thread starts it, the migrations, and this file. */
async function fingerprint() {
  const migrations = (await readdir('migrations')).sort().map((name) => `migrations/${name}`)
  const files = [
    'src/storage/postgres.worker.mjs',
    'src/storage/migrations.ts',
    'scripts/prepare-store.mjs',
    'node_modules/@electric-sql/pglite/package.json',
    ...migrations,
  ]
  const sum = createHash('sha256')
  for (const file of files) sum.update(await readFile(file))
  return sum.digest('hex').slice(0, 16)
}

async function makeStore(dist, directory) {
  const load = (name) => import(pathToFileURL(resolve(dist, 'storage', name)).href)
  const { PostgresWorker } = await load('embedded-worker.js')
  const { connectionPool } = await load('postgres.js')
  const { migrate } = await load('migrations.js')
  const worker = await PostgresWorker.start(directory)
  const session = { user: 'postgres', password: '', database: 'postgres', ssl: false, max: 1 }
  const queries = connectionPool({ stream: () => worker.connect(), ...session }, () => undefined)
  await migrate(queries)
  for (const statement of [...WITHOUT_TEMPLATES, ...WITH_NEW_LOG]) await sql.raw(statement).execute(queries)
  await queries.destroy()
  await worker.close()
}

async function packedStore(dist) {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-store-'))
  try {
    await makeStore(dist, directory)
    const options = { map: (header) => ({ ...header, uname: '', gname: '', uid: 0, gid: 0, mtime: new Date(0) }) }
    return brotliCompressSync(await buffer(packTar(directory, options)), { params: COMPRESSION })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Puts the packed store into the compiled gateway; made anew only where what it depends on has changed. */
export async function prepareStore(dist) {
  const cached = join(CACHE, `${await fingerprint()}-${NAME}`)
  const isThere = await readFile(cached).then(
    ({ length }) => length > 0,
    () => false,
  )
  if (!isThere) {
    await mkdir(CACHE, { recursive: true })
    const made = `${cached}.${process.pid}`
    await writeFile(made, await packedStore(dist))
    await rename(made, cached)
  }
  await cp(cached, join(dist, NAME))
}
