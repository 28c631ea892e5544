import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startGateway, type TestGateway } from '../support/gateway.js'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({ channels: [] })
})
afterAll(() => gateway.close())

describe('The log of a start', () => {
  it('tells of no dependency that nobody can name: the compilers agree on every parameter', () => {
    expect(gateway.logText()).toContain('AppModule dependencies initialized')
    expect(gateway.logText().match(/undefined dependency/g) ?? []).toEqual([])
  })
})
