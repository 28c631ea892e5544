import { describe, expect, it } from '@jest/globals'
import { RouteTable } from './routes.js'

const table = new RouteTable([
  { path: '/v1/chat/completions', methods: ['POST'] },
  { path: '/v1/models', methods: ['GET'] },
  { path: '/v1/models/:model', methods: ['GET'] },
  { path: '/vidgen/v1/videos/text2video', methods: ['POST'] },
  { path: '/vidgen/v1/videos/text2video', methods: ['GET'] },
  { path: '/vidgen/v1/videos/text2video/:id', methods: ['GET'] },
  { path: '/vidgen/v1/videos/text2video/:id/events', methods: ['GET'] },
  { path: '/admin/*path', methods: ['GET'] },
])

describe('A path', () => {
  it.each([
    ['/v1/chat/completions', '/v1/chat/completions', 'chat'],
    ['/v1/models/gpt-4o', '/v1/models/:model', 'other'],
    ['/vidgen/v1/videos/text2video/abc', '/vidgen/v1/videos/text2video/:id', 'video'],
    ['/vidgen/v1/videos/text2video/abc/events', '/vidgen/v1/videos/text2video/:id/events', 'video'],
    ['/admin/whatever/else', '/admin/*path', 'other'],
  ])('%s is counted under %s', (path, template, family) => {
    expect(table.find(path)).toMatchObject({ template, family })
  })

  it.each([
    '/',
    '',
    '/v1/models/',
    '/v1/Chat/completions',
    '/v1/chat/completions/',
    '/v1/models/a/b',
    '/vidgen/v1/videos/text2video//events',
    '/constructor',
    `/${'a/'.repeat(8000)}`,
  ])('that no route knows is counted under none of its own: %.40s', (path) => {
    expect(table.find(path)).toMatchObject({ template: 'other', family: 'other' })
  })

  it('has the methods of all its routes, and HEAD where there is GET', () => {
    expect([...table.find('/vidgen/v1/videos/text2video').methods].sort()).toEqual(['GET', 'HEAD', 'POST'])
    expect([...table.find('/v1/chat/completions').methods]).toEqual(['POST'])
    expect([...table.find('/nothing').methods]).toEqual([])
  })
})
