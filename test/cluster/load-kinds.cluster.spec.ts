import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Database } from '../../src/storage/database.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { dataDirectory as newDataDirectory, STORE_START_MS } from '../support/stores.js'
import { NEVER_POLLED } from '../support/task-gateways.js'
import { isWhole, type LoadKind, type LoadQuestion } from './callers.js'
import { type LoadUpstreams, startLoadUpstreams } from './load-upstreams.js'

let upstreams: LoadUpstreams
let gateway: TestGateway
let dataDirectory: string
beforeAll(async () => {
  upstreams = await startLoadUpstreams()
  dataDirectory = await newDataDirectory()
  gateway = await startGateway({ channels: upstreams.channels, dataDirectory, sections: { tasks: NEVER_POLLED } })
  await gateway.application.get(Database).open()
}, STORE_START_MS)
afterAll(async () => {
  await gateway.close()
  await upstreams.close()
  await rm(dataDirectory, { recursive: true })
})

const kindOf = (name: string): LoadKind => {
  const kind = upstreams.kinds.find((candidate) => candidate.name === name)
  if (kind === undefined) throw new Error(`nothing is asked of the kind ${name}`)
  return kind
}

async function answerTo({ method, path, headers = {}, body }: LoadQuestion): Promise<Buffer> {
  const request = {
    path,
    headers,
    ...(method === undefined ? {} : { method }),
    ...(body === undefined ? {} : { body }),
  }
  return (await sendRaw(gateway.url, request)).body
}

describe('The load of a rolling restart', () => {
  it.each(['chat', 'transcription', 'speech', 'document', 'messages', 'video', 'image'])(
    'takes the whole answer to a request of the kind %s for whole, and no other',
    async (name) => {
      const [question, another] = [kindOf(name).ask('load-1'), kindOf(name).ask('load-2')]
      const answer = await answerTo(question)
      expect(isWhole(question, answer)).toBe(true)
      expect(isWhole(another, answer)).toBe(false)
      const cut = [0, answer.length >> 1, answer.length - 3].map((length) => answer.subarray(0, length))
      for (const piece of [...cut, Buffer.from('{}')]) expect(isWhole(question, piece)).toBe(false)
    },
  )

  it('asks for every kind, and uploads some hundred kilobytes', () => {
    expect(upstreams.kinds).toHaveLength(7)
    expect(Buffer.from(kindOf('transcription').ask('load-3').body ?? '').length).toBeGreaterThan(300_000)
  })
})
