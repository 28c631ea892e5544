import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type { Simulator } from '../server/simulator-server.js'
import { startP1Simulator } from './p1.simulator.js'

let simulator: Simulator

beforeAll(async () => {
  simulator = await startP1Simulator()
})
afterEach(() => {
  simulator.reset()
})
afterAll(async () => {
  await simulator.close()
})

async function embed(body: object): Promise<{ status: number; json: Record<string, unknown> }> {
  const headers = { authorization: 'Bearer sk-test-key', 'content-type': 'application/json' }
  const text = JSON.stringify({ model: 'text-embedding-3-small', input: 'x', ...body })
  const response = await fetch(`${simulator.url}/v1/embeddings`, { method: 'POST', headers, body: text })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

describe('the P1 embeddings simulator', () => {
  it.each([
    ['text-embedding-3-small', 1536],
    ['text-embedding-3-large', 3072],
    ['text-embedding-ada-002', 1536],
  ])('gives vectors of length 1 in the size of %s, the same for the same text', async (model, size) => {
    const { json } = await embed({ model, input: ['One text', 'One text'] })
    const [one, other] = (json['data'] as { embedding: number[] }[]).map(({ embedding }) => embedding)
    expect(one).toHaveLength(size)
    expect(one).toEqual(other)
    expect(Math.hypot(...(one ?? []))).toBeCloseTo(1, 5)
  })

  it('gives the same numbers as Base64', async () => {
    const vectorOf = ({ json }: Awaited<ReturnType<typeof embed>>) => (json['data'] as { embedding: unknown }[])[0]
    const numbers = vectorOf(await embed({ dimensions: 3 }))?.embedding
    const text = String(vectorOf(await embed({ dimensions: 3, encoding_format: 'base64' }))?.embedding)
    const bytes = Buffer.from(text, 'base64')
    expect([0, 4, 8].map((place) => bytes.readFloatLE(place))).toEqual(numbers)
  })

  it('counts the tokens of all inputs', async () => {
    const { json } = await embed({ input: [[1, 2, 3], [4]] })
    expect(json['usage']).toEqual({ prompt_tokens: 4, total_tokens: 4 })
    expect(simulator.served.answers['text-embedding-3-small']?.at(-1)).toEqual({ promptTokens: 4 })
  })

  it.each([
    ['an unknown field', { top_p: 1 }, 400, /Unrecognized request argument supplied: top_p/],
    ['an unknown model', { model: 'missing-model' }, 404, /does not exist/],
    ['a chat model', { model: 'gpt-4o-mini' }, 404, /does not exist/],
    ['an encoding', { encoding_format: 'hex' }, 400, /encoding_format/],
    ['a user who is no text', { user: 1 }, 400, /user/],
    ['an empty text', { input: '' }, 400, /\$\.input/],
    ['an empty text among others', { input: ['a', ''] }, 400, /\$\.input/],
    ['texts among tokens', { input: [1, 'a'] }, 400, /\$\.input/],
    ['an empty list', { input: [] }, 400, /\$\.input/],
    ['too many texts', { input: Array(2049).fill('a') }, 400, /2048/],
    ['a text that is too long', { input: Array(8193).fill(1) }, 400, /maximum context length is 8192 tokens/],
    ['too much in all', { input: Array(38).fill(Array(8000).fill(1)) }, 400, /300000 tokens per request/],
    ['a size that is too large', { dimensions: 1537 }, 400, /dimensions/],
    ['a size of the model that has one', { model: 'text-embedding-ada-002', dimensions: 8 }, 400, /dimensions/],
  ])('refuses %s', async (_what, body, status, message) => {
    const answer = await embed(body)
    expect(answer.status).toBe(status)
    expect((answer.json['error'] as { message: string }).message).toMatch(message)
  })

  it('refuses a model for vectors on the chat path', async () => {
    const headers = { authorization: 'Bearer sk-test-key', 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'text-embedding-3-small', messages: [{ role: 'user', content: 'x' }] })
    const response = await fetch(`${simulator.url}/v1/chat/completions`, { method: 'POST', headers, body })
    expect(response.status).toBe(404)
    expect(await response.text()).toContain('This is not a chat model')
  })
})
