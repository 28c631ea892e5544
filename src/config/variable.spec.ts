import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { ConfigError } from './config-fault.js'
import { parseConfig } from './load-config.js'
import { readVariable, type Variables } from './variable.js'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'gateway-secrets-'))
})
afterAll(() => {
  rmSync(directory, { recursive: true })
})

let count = 0
/** The path of a new file with this content. */
function fileWith(content: string | Buffer): string {
  count += 1
  const path = join(directory, `path-canary-${count}`)
  writeFileSync(path, content)
  return path
}

describe('a variable', () => {
  it.each<[string, Variables, object]>([
    ['set', { KEY: 'value' }, { value: 'value' }],
    ['not set', {}, {}],
    ['empty', { KEY: '' }, {}],
    ['empty, as its file is', { KEY: '', KEY_FILE: '' }, {}],
  ])('that is %s', (_name, env, expected) => {
    expect(readVariable(env, 'KEY')).toEqual(expected)
  })

  it.each([
    ['as it is', 'sk-secret', 'sk-secret'],
    ['without the line end of an editor', 'sk-secret\n', 'sk-secret'],
    ['without the line end of another system', 'sk-secret\r\n', 'sk-secret'],
    ['with every other white space', ' two\nlines\n\n', ' two\nlines\n'],
    ['in any script', 'clé 🔑', 'clé 🔑'],
    ['to the last byte allowed', 'x'.repeat(65_536), 'x'.repeat(65_536)],
  ])('is taken from its file %s', (_name, content, value) => {
    expect(readVariable({ KEY_FILE: fileWith(content) }, 'KEY')).toEqual({ value })
    expect(readVariable({ KEY: '', KEY_FILE: fileWith(content) }, 'KEY')).toEqual({ value })
  })

  it.each<[string, () => string, string]>([
    ['does not exist', () => join(directory, 'path-canary'), 'the file that KEY_FILE names does not exist'],
    ['is a folder', () => directory, 'the file that KEY_FILE names cannot be read (EISDIR)'],
    ['is empty', () => fileWith(''), 'the file that KEY_FILE names is empty'],
    ['holds a line end alone', () => fileWith('\n'), 'the file that KEY_FILE names is empty'],
    [
      'is too large',
      () => fileWith('canary'.repeat(11_000)),
      'the file that KEY_FILE names is larger than 65536 bytes',
    ],
    ['never ends', () => '/dev/zero', 'the file that KEY_FILE names is larger than 65536 bytes'],
    ['is no text', () => fileWith(Buffer.from([0xff, 0xfe])), 'the file that KEY_FILE names must be UTF-8 text'],
  ])('whose file %s has a problem that names neither path nor content', (_name, path, problem) => {
    expect(readVariable({ KEY_FILE: path() }, 'KEY')).toEqual({ problem })
  })

  it('that is given twice has a problem', () => {
    const problem = 'KEY and KEY_FILE are both set; leave one of them out'
    expect(readVariable({ KEY: 'canary', KEY_FILE: fileWith('canary') }, 'KEY')).toEqual({ problem })
  })
})

function faultsOf(yaml: string, env: Variables): string[] {
  try {
    parseConfig(yaml, env)
  } catch (error) {
    return (error as ConfigError).faults.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

describe('a configuration', () => {
  it('takes secrets from files, in its values and in place of them', () => {
    const config = parseConfig(
      'channels: [{ id: a, provider: p1, baseUrl: "http://h", credentials: "${P1_KEY}" }]\nredis: { url: "${NOT_SET}" }',
      {
        P1_KEY_FILE: fileWith('sk-1\n'),
        DATABASE_URL_FILE: fileWith('postgres://u:p@h/d\n'),
        REDIS_URL_FILE: fileWith('redis://r'),
      },
    )
    expect(config.channels[0]?.credentials).toEqual({ kind: 'own', secret: 'sk-1' })
    expect([config.database.url, config.redis.url]).toEqual(['postgres://u:p@h/d', 'redis://r'])
  })

  it('reports every file that cannot be read, once, by the names of its variables alone', () => {
    const missing = join(directory, 'path-canary')
    const yaml = 'auth: { keys: [{ id: a, key: "${TEAM_KEY:-canary}" }] }\ndatabase: { url: "postgres://canary/d" }'
    expect(
      faultsOf(yaml, { TEAM_KEY_FILE: missing, DATABASE_URL_FILE: missing, PORT: '1', PORT_FILE: missing }),
    ).toEqual([
      'PORT: PORT and PORT_FILE are both set; leave one of them out',
      'DATABASE_URL: the file that DATABASE_URL_FILE names does not exist',
      'auth.keys[0].key: the file that TEAM_KEY_FILE names does not exist',
    ])
  })

  it('judges what came from a file as it would any value', () => {
    expect(faultsOf('{}', { DATABASE_URL_FILE: fileWith('canary') })).toEqual([
      expect.stringMatching(/^DATABASE_URL: must be .*postgres/),
    ])
  })
})
