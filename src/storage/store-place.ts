import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { createLogging } from '../observability/logger.js'
import { type BareStore, StoreUnusable } from './database.js'
import { EmbeddedEngine } from './embedded.js'
import { visibleDamage } from './embedded-files.js'
import { openServer } from './postgres.js'
import { fixFormats, type Queries } from './store-tables.js'

/** Where a store is: the folder of an embedded one, or the address of a PostgreSQL. */
export type StorePlace = { readonly directory: string } | { readonly url: string }

/** For the operator, without user, password and options. */
export const nameOf = (place: StorePlace): string =>
  'directory' in place ? place.directory : place.url.replace(/^(\w+:\/\/)(?:[^@/?]*@)?([^?]*).*$/s, '$1$2')

/** Whether both are the same store, as far as their names tell. */
export async function areSame(one: StorePlace, other: StorePlace): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map(identity))
  return first === second
}

const identity = async (place: StorePlace): Promise<string> =>
  'directory' in place ? realpath(place.directory).catch(() => place.directory) : nameOf(place)

/** Opens a store that is there. */
export async function withSource<Result>(
  place: StorePlace,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  if ('url' in place) return using(await openServer(place.url, false), work)
  // Opening would make a new store where the operator has mistyped its folder.
  const damage = await visibleDamage(join(place.directory, 'postgres'))
  if (damage !== undefined)
    throw new StoreUnusable(`There is no store of the gateway in ${place.directory}: ${damage}.`)
  return using(await embedded(place.directory), work)
}

/** Opens a store to be filled; an embedded one is made where there is none. */
export async function withTarget<Result>(
  place: StorePlace,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  return using(await ('url' in place ? openServer(place.url, true) : embedded(place.directory)), work)
}

const embedded = (directory: string): Promise<BareStore> =>
  new EmbeddedEngine(directory, createLogging('silent').logger).openBare()

async function using<Result>(store: BareStore, work: (queries: Queries) => Promise<Result>): Promise<Result> {
  try {
    await fixFormats(store.queries)
    return await work(store.queries)
  } finally {
    await store.close()
  }
}

/** Files of usage that no store has taken yet, beside an embedded store or where a gateway with PostgreSQL keeps them. */
export const unstoredUsage = async (directory: string): Promise<number> =>
  (await readdir(join(directory, 'unstored-usage')).catch(() => [])).length
