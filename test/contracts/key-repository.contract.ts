import { createHash } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import type { AuditRepository, AuditEntry } from '../../src/admin/audit-log.js'
import { KyselyAuditRepository } from '../../src/admin/audit-log.pg.js'
import { KyselyKeyRepository } from '../../src/auth/key.pg.js'
import type { KeyRepository, NewIssuedKey } from '../../src/auth/key.repository.js'
import type { TestStore } from '../support/stores.js'

export interface KeyRepositories {
  readonly keys: KeyRepository
  readonly audit: AuditRepository
  /** As if the clock of the database had been put back since the last change. */
  readonly putClockBack: (durationMs: number) => Promise<void>
}

let count = 0

const someKey = (given: Partial<NewIssuedKey> = {}): NewIssuedKey => {
  count += 1
  return {
    id: `key-${count}`,
    sha256: createHash('sha256').update(`key ${count}`).digest('hex'),
    hint: 'sk-gw-abcd',
    ...given,
  }
}

const KEY_FIELDS = {
  models: ['gpt-*', 'ü"\'; drop table api_key; --'],
  limits: { requestsPerMinute: 5, concurrency: 1 },
  translation: 'strict',
  note: "team b's \\ key 🔑",
  expiresAtMs: 1_900_000_000_123,
} as const

const entry = (given: Partial<AuditEntry> = {}): AuditEntry => ({
  atMs: 1_800_000_000_000,
  actor: 'admin-01234567',
  action: 'keys.create',
  outcome: 'begun',
  details: {},
  requestId: 'req_1',
  ...given,
})

/** What every store of keys does; `repositories` is asked anew in each test. */
export function describeKeyRepository(name: string, repositories: () => KeyRepositories): void {
  describe(`keys in ${name}`, () => {
    it('keep every term they were issued with, by the clock of the database', async () => {
      const { keys } = repositories()
      const key = someKey(KEY_FIELDS)
      const created = await keys.create(key)
      expect(created).toEqual({ ...key, createdAtMs: expect.any(Number), updatedAtMs: created?.createdAtMs })
      expect(Math.abs((created?.createdAtMs ?? 0) - Date.now())).toBeLessThan(60_000)
      expect(await keys.find(key.id)).toEqual(created)
      expect(await keys.find(key.id.toUpperCase())).toBeUndefined()
    })

    it('have nothing they were not issued with', async () => {
      const { keys } = repositories()
      const key = someKey()
      expect(Object.keys((await keys.create(key)) ?? {}).sort()).toEqual([
        'createdAtMs',
        'hint',
        'id',
        'sha256',
        'updatedAtMs',
      ])
    })

    it('are won by one of fifty that want the same id, which stays taken when it is revoked', async () => {
      const { keys } = repositories()
      const created = await Promise.all(Array.from({ length: 50 }, () => keys.create(someKey({ id: 'the-one' }))))
      const won = created.filter((key) => key !== undefined)
      expect(won).toHaveLength(1)
      expect(await keys.find('the-one')).toEqual(won[0])
      await keys.revoke('the-one')
      expect(await keys.create(someKey({ id: 'the-one' }))).toBeUndefined()
    })

    it('are no two with one hash', async () => {
      const { keys } = repositories()
      const { sha256 } = (await keys.create(someKey())) ?? { sha256: '' }
      await expect(keys.create(someKey({ sha256 }))).rejects.toMatchObject({ code: '23505' })
    })

    it('are changed in what is named, and lose what is taken away', async () => {
      const { keys } = repositories()
      const key = someKey(KEY_FIELDS)
      const created = await keys.create(key)
      const changed = await keys.change(key.id, { models: ['tts-*'], note: null })
      expect(changed).toEqual({
        ...key,
        ...KEY_FIELDS,
        note: undefined,
        models: ['tts-*'],
        createdAtMs: created?.createdAtMs,
        updatedAtMs: changed?.updatedAtMs,
      })
      const bare = await keys.change(key.id, { models: null, limits: null, translation: null, expiresAtMs: null })
      expect(Object.keys(bare ?? {})).not.toEqual(
        expect.arrayContaining(['models', 'limits', 'translation', 'note', 'expiresAtMs']),
      )
      expect(await keys.change('unknown', { note: 'x' })).toBeUndefined()
    })

    it('look later with every change, even when the clock is put back', async () => {
      const { keys, putClockBack } = repositories()
      const { id, updatedAtMs = 0 } = (await keys.create(someKey())) ?? { id: '' }
      await putClockBack(60_000)
      let lastMs = updatedAtMs + 60_000
      for (let time = 0; time < 5; time += 1) {
        const { updatedAtMs: nowMs = 0 } = (await keys.change(id, { note: `${time}` })) ?? {}
        expect(nowMs).toBeGreaterThan(lastMs)
        lastMs = nowMs
      }
    })

    it('are revoked once and for good', async () => {
      const { keys } = repositories()
      const { id } = (await keys.create(someKey())) ?? { id: '' }
      const revoked = await keys.revoke(id)
      expect(Math.abs((revoked?.revokedAtMs ?? 0) - Date.now())).toBeLessThan(60_000)
      expect(await keys.revoke(id)).toEqual(revoked)
      expect(await keys.change(id, { expiresAtMs: null })).toBeUndefined()
      expect(await keys.find(id)).toEqual(revoked)
      expect(await keys.revoke('unknown')).toBeUndefined()
    })

    it('are shown in the order of their ids, bytes and not letters', async () => {
      const { keys } = repositories()
      for (const id of ['b', 'a', 'B', '_', '1', 'a.b', 'a-b']) await keys.create(someKey({ id }))
      expect((await keys.page(10)).map(({ id }) => id)).toEqual(['1', 'B', '_', 'a', 'a-b', 'a.b', 'b'])
      expect((await keys.page(2, 'B')).map(({ id }) => id)).toEqual(['_', 'a'])
      expect(await keys.page(10, 'b')).toEqual([])
    })

    it('are read as callers are identified by, all of them or those that were changed since', async () => {
      const { keys } = repositories()
      const [one, other] = [someKey(KEY_FIELDS), someKey()]
      await keys.create(one)
      await keys.create(other)
      const all = await keys.read()
      expect(all.keys.map(({ id }) => id).sort()).toEqual([one.id, other.id].sort())
      expect(all.keys.find(({ id }) => id === one.id)).toEqual({
        id: one.id,
        sha256: one.sha256,
        models: KEY_FIELDS.models,
        limits: KEY_FIELDS.limits,
        translation: KEY_FIELDS.translation,
        isRevoked: false,
        expiresAtMs: KEY_FIELDS.expiresAtMs,
        updatedAtMs: expect.any(Number),
      })
      const revoked = await keys.revoke(other.id)
      expect(await keys.read(revoked?.updatedAtMs)).toEqual({
        keys: [{ id: other.id, sha256: other.sha256, isRevoked: true, updatedAtMs: revoked?.updatedAtMs }],
        asOfMs: expect.any(Number),
      })
      const { keys: none, asOfMs } = await keys.read((revoked?.updatedAtMs ?? 0) + 1)
      expect(none).toEqual([])
      expect(asOfMs).toBeGreaterThanOrEqual(revoked?.updatedAtMs ?? Infinity)
    })
  })

  describe(`the audit log in ${name}`, () => {
    it('keeps every field, and how it ended', async () => {
      const { audit } = repositories()
      const written = entry({ target: 'team-b', details: { models: ['ü"\''], nothing: null } })
      const sequence = await audit.record(written)
      expect(await audit.page(10)).toEqual([{ ...written, sequence }])
      await audit.recordOutcome(sequence, 'refused')
      expect(await audit.page(10)).toEqual([{ ...written, sequence, outcome: 'refused' }])
    })

    it('shows the newest first, page by page', async () => {
      const { audit } = repositories()
      const sequences: number[] = []
      for (let time = 0; time < 5; time += 1) sequences.unshift(await audit.record(entry({ atMs: -time })))
      expect((await audit.page(2)).map(({ sequence }) => sequence)).toEqual(sequences.slice(0, 2))
      expect((await audit.page(2, sequences[1])).map(({ sequence }) => sequence)).toEqual(sequences.slice(2, 4))
      expect((await audit.page(1))[0]).not.toHaveProperty('target')
    })

    it('forgets what is old, so much at a time', async () => {
      const { audit } = repositories()
      for (const atMs of [1, 2, 3, 4]) await audit.record(entry({ atMs }))
      expect(await audit.prune(4, 2)).toBe(2)
      expect(await audit.prune(4, 2)).toBe(1)
      expect(await audit.prune(4, 2)).toBe(0)
      expect((await audit.page(10)).map(({ atMs }) => atMs)).toEqual([4])
    })
  })
}

/** The repositories of keys on a store, in which there are none. */
export async function keyRepositories({ database }: TestStore): Promise<KeyRepositories> {
  await database.run((queries) => queries.deleteFrom('api_key').execute())
  await database.run((queries) => queries.deleteFrom('admin_audit').execute())
  return {
    keys: new KyselyKeyRepository(database),
    audit: new KyselyAuditRepository(database),
    putClockBack: async (durationMs) => {
      await database.run((queries) =>
        queries
          .updateTable('api_key')
          .set(({ eb }) => ({ updated_at_ms: eb('updated_at_ms', '+', durationMs) }))
          .execute(),
      )
    },
  }
}
