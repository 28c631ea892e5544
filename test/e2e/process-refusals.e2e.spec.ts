import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { TRANSCRIPTIONS } from '../support/audio-uploads.js'
import { CHAT_PATH } from '../support/chat-bodies.js'
import { emptyDirectory, runGateway, type GatewayProcess } from '../support/gateway-process.js'
import { errorOf, sendRaw } from '../support/raw-http.js'
import { MULTIPART } from '../support/upload-server.js'

const MEGABYTE = 1_000_000
const ROUNDS = 10

let gateway: GatewayProcess
let url: string

// Two processes: in one alone, the client always reads the answer before it notices that its connection is gone.
beforeAll(async () => {
  gateway = runGateway(await emptyDirectory())
  url = await gateway.listening()
})
afterAll(() => gateway.close())

const JSON_TYPE = 'application/json'
const KEY = 'Bearer sandbox-demo-key'

describe.each(['close', 'keep-alive'])('a client (connection: %s) who is still sending', (connection) => {
  it.each([
    ['an upload over its limit', TRANSCRIPTIONS, MULTIPART['content-type'], KEY, 40, 413, 'payload_too_large'],
    ['an upload without a key', TRANSCRIPTIONS, MULTIPART['content-type'], undefined, 20, 401, 'invalid_api_key'],
    ['an upload of another kind', TRANSCRIPTIONS, 'audio/wav', KEY, 20, 415, 'unsupported_media_type'],
    ['JSON over its limit', CHAT_PATH, JSON_TYPE, KEY, 12, 413, 'payload_too_large'],
    ['to an unknown path', '/v1/nowhere', JSON_TYPE, KEY, 12, 404, 'not_found'],
  ])('%s reads why it is refused', async (_name, path, type, authorization, megabytes, status, code) => {
    const body = Buffer.alloc(megabytes * MEGABYTE)
    const headers = { connection, authorization, 'content-type': type }
    for (let round = 0; round < ROUNDS; round++) {
      const answer = await sendRaw(url, { path, body, headers })
      expect([answer.status, errorOf(answer).code, answer.complete]).toEqual([status, code, true])
    }
  })
})
