import { describe, expect, it } from '@jest/globals'
import { UnknownPaths } from './unknown-path.js'

const paths = new UnknownPaths([
  '/v1/chat/completions',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/audio/speech',
  '/v1/models',
  '/v1/models/*model',
  '/v1/realtime',
  '/vidgen/v1/videos/text2video/:id',
])

describe('a path without a route', () => {
  it.each([
    ['/v1/chat/completions/', 'at /v1/chat/completions: paths do not end with a slash.'],
    ['/v1//chat/completions', 'at /v1/chat/completions: a slash is doubled.'],
    ['//v1/chat/completions', 'at /v1/chat/completions: a slash is doubled.'],
    ['/V1/Chat/Completions', 'at /v1/chat/completions: paths are in lower case.'],
    ['/v1/v1/messages', 'at /v1/messages: the base URL of this client must not end with /v1.'],
    ['/v1/v1/messages/', 'at /v1/messages: the base URL of this client must not end with /v1.'],
    ['/chat/completions', 'at /v1/chat/completions: the base URL of this client must end with /v1.'],
    ['/models/gpt-4o', 'at /v1/models/{model}: the base URL of this client must end with /v1.'],
    ['/models/org/model', 'at /v1/models/{model}: the base URL of this client must end with /v1.'],
    ['/v1/models/', 'at /v1/models: paths do not end with a slash.'],
    ['/openai/v1/audio/speech', "at /v1/audio/speech: paths do not begin with '/openai'."],
    ['/api/v1/messages', "at /v1/messages: paths do not begin with '/api'."],
    ['/vidgen/v1/videos/text2video/5/', 'at /vidgen/v1/videos/text2video/{id}: paths do not end with a slash.'],
    ['/v1/chat/completion', "at '/v1/chat/completion'. The nearest path is /v1/chat/completions."],
    ['/v1/audio/speach', "at '/v1/audio/speach'. The nearest path is /v1/audio/speech."],
    ['/', "at '/'. GET / leads"],
    ['', "at ''. GET / leads"],
    ['/a/path/of/another/service', "at '/a/path/of/another/service'. GET / leads"],
  ])('%s is told what is near: %s', (path, words) => {
    expect(paths.describe(path)).toContain(words)
    expect(paths.describe(path)).toContain('docs/clients.md')
  })

  it.each([
    ['/v1/completions', 'Use /v1/chat/completions.'],
    ['/v1/completions/1/more', 'Use /v1/chat/completions.'],
    ['/completions', 'Use /v1/chat/completions.'],
    ['/v1/v1/moderations', 'is not served here. See docs/providers.md'],
    ['/v1/realtime/client_secrets', 'Open a WebSocket to /v1/realtime'],
    ['/openai/deployments/gpt-4o/chat/completions', 'Use the base URL of this gateway'],
    ['/v1beta/models/gemini-pro:generateContent', 'is not served here.'],
    ['/api/chat', 'Use /v1/chat/completions.'],
    ['/v1/completionsx', 'There is nothing at'],
  ])('%s of a vendor is told what to use: %s', (path, words) => {
    expect(paths.describe(path)).toContain(words)
  })

  it('shows no key, no markup and nothing long of what was asked for', () => {
    expect(paths.describe('/v1/chat/sk-proj-abcdef0123456789')).toContain("'/v1/chat/[key]'")
    expect(paths.describe('/sk-proj-abcdef0123456789/v1/messages')).not.toContain('abcdef')
    expect(paths.describe('/vidgen/callbacks/token/x', '/vidgen/callbacks/*')).not.toContain('token')
    const own = new UnknownPaths(['/v1/messages'], (text) => text === 'house-key-17')
    expect(own.describe('/house-key-17/v1/messages')).not.toContain('house-key-17')
    expect(paths.describe("/<script>'&")).toContain("'/script'")
    expect(paths.describe(`/v1/${'a'.repeat(10_000)}`).length).toBeLessThan(300)
  })
})
