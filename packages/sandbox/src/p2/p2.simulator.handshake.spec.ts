import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { errorOf, P2SimulatorLab } from '../../test/p2-simulator-lab.js'
import { converseP2, openP2, P2_PATH, p2Json } from '../../test/speech-simulator-labs.js'
import { startP2Simulator } from './p2.simulator.js'

const lab = new P2SimulatorLab()
const { start } = lab

afterEach(() => lab.close())

describe('the handshake', () => {
  it.each([
    ['another path', '/api/v1/tts', 'Bearer;token-1', 404],
    ['a longer path', `${P2_PATH}/`, 'Bearer;token-1', 404],
    ['a query string', `${P2_PATH}?a=1`, 'Bearer;token-1', 404],
    ['a space instead of the semicolon', P2_PATH, 'Bearer token-1', 401],
    ['a bare token', P2_PATH, 'token-1', 401],
    ['a key with both parts', P2_PATH, 'Bearer;app-1|token-1', 401],
    ['no token', P2_PATH, 'Bearer;', 401],
    ['a wrong token', P2_PATH, 'Bearer;token-2', 401],
  ])('%s is refused with JSON and a trace id', async (_name, path, authorization, status) => {
    const { url } = await start()
    await expect(openP2(`${url}${path}`, { authorization })).rejects.toMatchObject({
      status,
      headers: { 'content-type': 'application/json', 'x-tt-logid': expect.stringMatching(/^\d{14}[0-9A-F]{20}$/) },
      body: expect.stringMatching(/^\{"reqid":"","code":3001,"message":".+"/),
    })
    expect(lab.simulator?.lastSession?.refusedStatus).toBe(status)
  })

  it.each(['Bearer;token-1', 'Bearer; token-1'])('%s opens the socket with a trace id', async (authorization) => {
    const { url } = await start()
    const socket = new WebSocket(`${url}${P2_PATH}`, { headers: { authorization } })
    const opened = once(socket, 'open')
    const [response] = (await once(socket, 'upgrade')) as [{ headers: Record<string, string> }]
    await opened
    expect(response.headers['x-tt-logid']).toMatch(/^\d{14}[0-9A-F]{20}$/)
    expect(response.headers['x-tt-logid']).toBe(lab.simulator?.lastSession?.answerHeaders['x-tt-logid'])
    socket.close()
    await lab.simulator?.idle()
  })

  it('a wrong token can get an error frame instead', async () => {
    const { url } = await start({ wrongToken: 'frame', apiKey: 'app-1|other' })
    const conversation = await converseP2(url, p2Json())
    expect(errorOf(conversation)).toEqual([3001, 'authenticate request: load grant: requested grant not found'])
    expect(lab.simulator?.violations).toEqual([])
  })

  it('plain HTTP on the socket path is no handshake', async () => {
    const { httpUrl } = await start()
    const response = await fetch(`${httpUrl}${P2_PATH}`, { headers: { authorization: 'Bearer;token-1' } })
    expect(response.status).toBe(400)
  })

  it('a key that is no pair cannot start a simulator', () => {
    for (const apiKey of ['a', 'a|', '|b', 'a|b|c', '']) expect(() => startP2Simulator({ apiKey })).toThrow(TypeError)
  })
})
