import { describe, expect, it } from '@jest/globals'
import { CHAT_PATH, errorOf, type RawAnswer, sendRaw, SPEECH_PATH } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { type M1Gateway, startM1Gateway } from '../support/m1-gateway.js'
import { type P1Gateway, startP1Gateway } from '../support/provider-gateways.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import {
  fieldPart,
  filePart,
  MULTIPART,
  multipartBytes,
  TRANSCRIPTIONS,
  wavOfSeconds,
} from '../support/upload-server.js'

/**
 * An upstream written in Go takes names without regard to case, and the last of several: what the gateway has judged must
 * be all that such a parser finds.
 */
describe('A name that an upstream may take for another', () => {
  let p1: P1Gateway
  let m1: M1Gateway
  let video: VidgenGateway
  shareLab(async () => (p1 = await startP1Gateway({})))
  shareLab(async () => (m1 = await startM1Gateway({})))
  shareLab(async () => (video = await startVidgenGateway({})))

  const MESSAGES = '"messages":[{"role":"user","content":"Hello"}]'
  const CHAT = `"model":"gpt-4o-mini",${MESSAGES}`
  const partOf = (members: string): string =>
    `{"model":"gpt-4o-mini","messages":[{"role":"user","content":[{"type":"text","text":"a"},{${members}}]}]}`
  const IN_PART = 'messages[0].content[1]'

  it.each([
    ['Model', `{${CHAT},"Model":"gpt-5"}`],
    ['MODEL', `{"MODEL":"gpt-5",${CHAT}}`],
    ['Model', `{"Model":"gpt-4o-mini",${MESSAGES}}`],
    ['model', `{${CHAT},"model":"gpt-5"}`],
    ['N', `{${CHAT},"N":128}`],
    ['Max_Tokens', `{${CHAT},"max_tokens":1,"Max_Tokens":100000}`],
    ['MAX_COMPLETION_TOKENS', `{${CHAT},"MAX_COMPLETION_TOKENS":100000}`],
    ['Stream', `{${CHAT},"Stream":true}`],
    ['\u017ftream', `{${CHAT},"\u017ftream":true}`],
    ['\u017ftream', `{${CHAT},"\\u017ftream":true}`],
    ['Seed', `{${CHAT},"seed":1,"Seed":2}`],
    ['stream_options.Include_Usage', `{${CHAT},"stream_options":{"include_usage":true,"Include_Usage":false}}`],
    ['include_usage', `{${CHAT},"stream_options":{"include_usage":true,"include_usage":false}}`],
    ['include_usage', `{${CHAT},"stream_options":{"include_usage":true,"include\\u005fusage":false}}`],
    ['messages[0].Content', '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a","Content":"b"}]}'],
    ['content', '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a","content":"b"}]}'],
    ['tools[0].Function', `{${CHAT},"tools":[{"type":"function","function":{"name":"f"},"Function":{"name":"g"}}]}`],
    [`${IN_PART}.image_url.Url`, partOf('"type":"image_url","image_url":{"url":"https://a/","Url":"https://b/"}')],
    [`${IN_PART}.image_url.URL`, partOf('"type":"image_url","image_url":{"URL":"https://b/"}')],
    [`${IN_PART}.Image_Url`, partOf('"type":"image_url","Image_Url":{"url":"https://b/"}')],
    [`${IN_PART}.file.File_Data`, partOf('"type":"file","file":{"file_data":"a","File_Data":"b"}')],
    [`${IN_PART}.File`, partOf('"type":"file","File":{"file_id":"a"}')],
    [
      `${IN_PART}.input_audio.Data`,
      partOf('"type":"input_audio","input_audio":{"data":"AAAA","format":"wav","Data":"BBBB"}'),
    ],
    ['b', `{${CHAT},"metadata":{"a":{"b":1,"c":2,"b":3}}}`],
  ])('is refused in a chat request: %s in %s', async (param, body) => {
    const answer = await sendRaw(p1.gateway.url, { path: CHAT_PATH, body })
    expectRefused(answer, param)
    expect(p1.simulator.requests).toEqual([])
  })

  it.each([
    ['Model', '"Model":"gpt-5"'],
    ['Previous_Response_Id', '"Previous_Response_Id":"resp_of_another"'],
    ['previou\u017f_response_id', '"previou\u017f_response_id":"resp_of_another"'],
    ['previous_response_id', '"previous_response_id":null,"previous\\u005fresponse_id":"resp_of_another"'],
    ['Store', '"store":false,"Store":true'],
    ['Background', '"Background":true'],
    ['CONVERSATION', '"CONVERSATION":"conv_of_another"'],
    ['Max_Output_Tokens', '"max_output_tokens":16,"Max_Output_Tokens":100000'],
    ['Input', '"Input":[{"type":"item_reference","id":"msg_of_another"}]'],
    ['Reasoning', '"Reasoning":{"effort":"high"}'],
  ])('is refused in a request for a response: %s in %s', async (param, members) => {
    const body = `{"model":"gpt-5-mini","input":"Hello",${members}}`
    for (const path of ['/v1/responses', '/v1/responses/input_tokens']) {
      expectRefused(await sendRaw(p1.gateway.url, { path, body }), param)
    }
    expect(p1.simulator.requests).toEqual([])
  })

  it.each([
    ['ID', '"type":"item_reference","ID":"msg_of_another"'],
    ['Type', '"type":"message","role":"user","content":"a","id":"msg_of_another","Type":"item_reference"'],
    ['Encrypted_Content', '"type":"reasoning","id":"rs_of_another","encrypted_content":"x","Encrypted_Content":null'],
    ['Result', '"type":"image_generation_call","id":"ig_of_another","result":"AAAA","Result":null'],
    ['Role', '"id":"msg_of_another","Role":"user"'],
  ])('is refused in an item of a response: %s in %s', async (name, members) => {
    const body = `{"model":"gpt-5-mini","input":[{${members}}]}`
    expectRefused(await sendRaw(p1.gateway.url, { path: '/v1/responses', body }), `input[0].${name}`)
    expect(p1.simulator.requests).toEqual([])
  })

  it.each([
    ['Voice', '{"model":"tts-1","input":"Hello","voice":"alloy","Voice":"echo"}'],
    ['voice.ID', '{"model":"tts-1","input":"Hello","voice":{"id":"alloy","ID":"echo"}}'],
  ])('is refused in a request for speech: %s in %s', async (param, body) => {
    expectRefused(await sendRaw(p1.gateway.url, { path: SPEECH_PATH, body }), param)
    expect(p1.simulator.requests).toEqual([])
  })

  it.each([
    ['Model', 'gpt-4o-transcribe'],
    ['PROMPT', 'Words'],
    ['\u017ftream', 'true'],
  ])('is refused as a field of a form: %s', async (param, value) => {
    const parts = [fieldPart('model', 'whisper-1'), fieldPart(param, value), filePart(wavOfSeconds(1))]
    const answer = await sendRaw(p1.gateway.url, {
      path: TRANSCRIPTIONS,
      headers: MULTIPART,
      body: multipartBytes(parts),
    })
    expectRefused(answer, param)
    expect(p1.simulator.requests).toEqual([])
  })

  it.each([
    ['Model', `{"model":"claude-sonnet-4-5","max_tokens":9,${MESSAGES},"Model":"claude-opus-4-1"}`],
    [
      'thinking.Budget_Tokens',
      `{"model":"claude-sonnet-4-5","max_tokens":9,${MESSAGES},"thinking":{"type":"enabled","Budget_Tokens":9}}`,
    ],
    [
      'messages[0].content[1].source.Url',
      partOf('"type":"image","source":{"type":"url","url":"https://a/","Url":"https://b/"}').replace(
        '"gpt-4o-mini"',
        '"claude-sonnet-4-5","max_tokens":9',
      ),
    ],
  ])('is refused in a messages request: %s in %s', async (param, body) => {
    const answer = await sendRaw(m1.gateway.url, { path: '/v1/messages', body })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(param)])
    expect(m1.simulator.requests).toEqual([])
  })

  it.each(['Callback_Url', 'External_Task_Id', 'Model_Name', 'EXTERNAL_TASK_\u0049D'])(
    'is refused in a create of a video: %s',
    async (name) => {
      const body = `{"model_name":"video-1","prompt":"A cat","${name}":"x"}`
      const answer = await sendRaw(video.gateway.url, { path: '/vidgen/v1/videos/text2video', body })
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(name)])
      expect(video.simulator.creates).toEqual([])
    },
  )
})

describe('Names that no upstream can take for one another', () => {
  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway({})))

  it.each([
    '"metadata":{"a":"1","A":"2"}',
    '"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"id":{},"ID":{}}}}}]',
  ])('travel on as they came: %s', async (more) => {
    const body = `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}],${more}}`
    const { status, text } = await sendRaw(lab.gateway.url, { path: CHAT_PATH, body })
    expect([status, status === 200 ? '' : text]).toEqual([200, ''])
    expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
  })
})

function expectRefused(answer: RawAnswer, param: string): void {
  const { code, param: named, type } = errorOf(answer)
  expect([answer.status, type, named]).toEqual([400, 'invalid_request_error', param])
  expect(['ambiguous_key', 'duplicate_key']).toContain(code)
}
