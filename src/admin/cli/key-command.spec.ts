import { describe, expect, it } from '@jest/globals'
import { InvalidCommandError, type Command, readCommand, USAGE } from './key-command.js'

const NOW_MS = 1_800_000_000_000
const read = (line: string): Command => readCommand(line === '' ? [] : line.split(' '), NOW_MS)
const PLAIN = { id: undefined, changes: {}, limits: {}, url: undefined, isQuiet: false, isJson: false }

describe('The command line of keys', () => {
  it.each([
    ['create', { name: 'create' }],
    ['create --id team-b --quiet', { name: 'create', id: 'team-b', isQuiet: true }],
    ['create --models a,b-* --note x', { name: 'create', changes: { models: ['a', 'b-*'], note: 'x' } }],
    ['create --translation strict', { name: 'create', changes: { translation: 'strict' } }],
    ['update a --translation none', { name: 'update', id: 'a', changes: { translation: null } }],
    ['create --requests-per-minute 5', { name: 'create', limits: { requestsPerMinute: 5 } }],
    ['create --expires 90d', { name: 'create', changes: { expires_at: NOW_MS + 90 * 86_400_000 } }],
    ['create --expires 12h', { name: 'create', changes: { expires_at: NOW_MS + 43_200_000 } }],
    ['create --expires 30m', { name: 'create', changes: { expires_at: NOW_MS + 1_800_000 } }],
    ['create --expires 2030-01-31', { name: 'create', changes: { expires_at: Date.UTC(2030, 0, 31) } }],
    [
      'create --expires 2030-01-31T12:00:00+02:00',
      { name: 'create', changes: { expires_at: Date.UTC(2030, 0, 31, 10) } },
    ],
    ['list --json --url http://h:1/x', { name: 'list', isJson: true, url: 'http://h:1/x' }],
    ['show a', { name: 'show', id: 'a' }],
    ['revoke a --url https://h', { name: 'revoke', id: 'a', url: 'https://h' }],
    [
      'update a --models none --note none --expires none --concurrency none --tokens-per-minute 7',
      {
        name: 'update',
        id: 'a',
        changes: { models: null, note: null, expires_at: null },
        limits: { concurrency: null, tokensPerMinute: 7 },
      },
    ],
    ['update a --expires 2020-01-01', { name: 'update', id: 'a', changes: { expires_at: Date.UTC(2020, 0, 1) } }],
    ['admin-key', { name: 'admin-key' }],
  ])('reads: %s', (line, command) => {
    expect(read(line)).toEqual({ ...PLAIN, ...command })
  })

  it.each([
    ['', 'Which command?'],
    ['make', 'There is no such command.'],
    ['constructor', 'There is no such command.'],
    ['create team-b', 'create takes options only. The id of a new key is given by --id.'],
    ['list team-b', 'list takes options only.'],
    ['update a', 'update needs something to change, such as --expires 30d.'],
    ['update a --json', 'update needs something to change'],
    ['show', 'show needs one id.'],
    ['revoke a b', 'revoke needs one id.'],
    ['create --translation loose', '--translation is strict or none.'],
    ['show a --models x', "Unknown option '--models'"],
    ['create --requests-per-minute many', '--requests-per-minute needs a whole number above 0'],
    ['create --requests-per-minute 0', '--requests-per-minute needs a whole number above 0'],
    ['create --concurrency -1', "'--concurrency' argument is ambiguous"],
    ['create --expires tomorrow', '--expires needs 90d'],
    ['create --expires 2030-13-01', '--expires needs 90d'],
    ['create --expires 2030-02-30', '--expires needs 90d'],
    ['create --expires 2030-01-31T12:00', '--expires needs 90d'],
    ['create --expires 2020-01-01', '--expires must be in the future.'],
    ['create --expires 0d', '--expires must be in the future.'],
    ['create --expires 01/02/2030', '--expires needs 90d'],
    ['list --url ftp://h', '--url must be'],
    ['list --url http://user:secret@h', '--url must be'],
    ['list --url', "'--url <value>' argument missing"],
    ['admin-key --url http://h', "Unknown option '--url'"],
  ])('does not understand: %s', (line, message) => {
    expect(() => read(line)).toThrow(InvalidCommandError)
    expect(() => read(line)).toThrow(message)
  })

  it('takes globs with spaces between them, and no id that is empty', () => {
    expect(readCommand(['create', '--models', 'gpt-*, tts-1'], NOW_MS).changes).toEqual({ models: ['gpt-*', 'tts-1'] })
    expect(() => readCommand(['revoke', ''], NOW_MS)).toThrow('revoke needs one id.')
  })

  it('explains every command and every option there is', () => {
    for (const word of ['create', 'list', 'show', 'update', 'revoke', 'admin-key'])
      expect(USAGE).toMatch(`\n  ${word} `)
    for (const option of ['models', 'expires', 'note', 'url', 'quiet', 'json', 'audio-seconds-per-minute'])
      expect(USAGE).toContain(`--${option}`)
  })
})
