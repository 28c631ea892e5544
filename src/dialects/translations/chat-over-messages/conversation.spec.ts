import { describe, expect, it } from '@jest/globals'
import {
  called,
  HELLO,
  messagesOf,
  partOf,
  PNG,
  refusalOf,
  result,
  sentOf,
  THOUGHT,
  translation,
} from '../../../../test/support/chat-translation.js'

describe('the messages of a chat request', () => {
  it('begin with instructions, one block for each part', () => {
    const { sent } = translation({
      messages: [
        { role: 'system', content: 'One' },
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'Two' },
            { type: 'text', text: '' },
            { type: 'text', text: 'Three' },
          ],
        },
        ...HELLO,
      ],
    })
    expect(sent['system']).toEqual(['One', 'Two', 'Three'].map((text) => ({ type: 'text', text })))
    expect(sent['messages']).toEqual(HELLO)
  })

  it('keep later instructions at their place where the model takes them there', () => {
    const messages = [
      ...HELLO,
      { role: 'assistant', content: 'Hi' },
      { role: 'developer', content: 'Be short' },
      ...HELLO,
    ]
    const { sent, approximated } = translation({ messages }, { facts: { systemRole: 'system' } })
    expect(sent['messages']).toEqual([...HELLO, messages[1], { role: 'system', content: 'Be short' }, ...HELLO])
    expect(approximated).toBeUndefined()
  })

  it('end with the user even where instructions came last', () => {
    const later = [...HELLO, { role: 'assistant', content: 'Hi' }, { role: 'system', content: 'Go on' }]
    expect(messagesOf(later)).toEqual([...HELLO, later[1], { role: 'user', content: 'Go on' }])
    expect(
      sentOf({
        messages: [
          { role: 'system', content: 'a' },
          { role: 'system', content: 'b' },
        ],
      }),
    ).toMatchObject({
      system: 'a',
      messages: [{ role: 'user', content: 'b' }],
    })
  })

  it('hold no empty text, and stay a conversation without it', () => {
    const empty = { role: 'user', content: '' }
    expect(messagesOf([empty, ...HELLO, { role: 'assistant', content: null }])).toEqual(HELLO)
    expect(messagesOf([...HELLO, { role: 'assistant', content: 'Hi' }, empty])).toEqual([
      ...HELLO,
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: '...' },
    ])
    expect(messagesOf([{ role: 'system', content: 'x' }, empty])).toEqual([{ role: 'user', content: '...' }])
  })

  it.each([
    ['text', { type: 'text', text: 'x' }, 'x'],
    [
      'a picture',
      { type: 'image_url', image_url: { url: PNG, detail: 'auto' } },
      { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
    ],
    [
      'a picture of a common other name',
      { type: 'image_url', image_url: { url: 'data:image/JPG;base64,AAAA' } },
      { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' },
    ],
    [
      'Base64 with line ends',
      { type: 'image_url', image_url: { url: 'data:image/gif;base64,AA\nA-' } },
      { type: 'base64', media_type: 'image/gif', data: 'AAA+' },
    ],
    [
      'a picture by its address',
      { type: 'image_url', image_url: { url: 'https://a.test/b.png' } },
      { type: 'url', url: 'https://a.test/b.png' },
    ],
    [
      'a PDF',
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } },
      { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
    ],
    [
      'a text file',
      { type: 'file', file: { file_data: 'data:text/markdown;charset=utf-8;base64,w6k=' } },
      { type: 'text', media_type: 'text/plain', data: 'é' },
    ],
  ])('carry %s', (_name, part, expected) => {
    const [message] = messagesOf([{ role: 'user', content: [part] }]) as { content: string | { source: object }[] }[]
    expect(typeof message?.content === 'string' ? message.content : message?.content[0]?.source).toEqual(expected)
  })

  it('carry parts in their order, and the name of a file', () => {
    const file = { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }
    const content = [
      { type: 'text', text: 'a' },
      { type: 'file', file },
      { type: 'text', text: 'b' },
    ]
    expect(messagesOf([{ role: 'user', content }])).toMatchObject([
      { content: [{ text: 'a' }, { type: 'document', title: 'a.pdf' }, { text: 'b' }] },
    ])
  })

  it('are refused where the model takes no pictures or files', () => {
    const path = 'messages[0].content[0].type'
    const picture = partOf({ type: 'image_url', image_url: { url: PNG } })
    expect(refusalOf(picture, { facts: { vision: false } }).details.param).toBe(path)
    const file = partOf({ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } })
    expect(refusalOf(file, { facts: { files: false } }).details.param).toBe(path)
  })

  it('mark the last four places at which the caller wants the cache cut', () => {
    const part = (text: string): object => ({ type: 'text', text, prompt_cache_breakpoint: { mode: 'explicit' } })
    const messages = [
      { role: 'system', content: [part('s')] },
      { role: 'user', content: [part('u')] },
      { role: 'assistant', tool_calls: [called('a')] },
      result('a', [part('r1'), { type: 'text', text: 'r2' }]),
      { role: 'user', content: [part('v'), part('w')] },
    ]
    const { sent, dropped } = translation({ messages })
    const mark = { cache_control: { type: 'ephemeral' } }
    expect(dropped).toBe('messages[0].content[0].prompt_cache_breakpoint')
    expect(sent['system']).toBe('s')
    expect(sent['messages']).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'u', ...mark }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'a',
            content: [
              { type: 'text', text: 'r1' },
              { type: 'text', text: 'r2' },
            ],
            ...mark,
          },
          { type: 'text', text: 'v', ...mark },
          { type: 'text', text: 'w', ...mark },
        ],
      },
    ])
  })

  it('join results in the order of their calls with what the user says next', () => {
    const messages = [
      ...HELLO,
      {
        role: 'assistant',
        content: 'Let me see',
        refusal: null,
        tool_calls: [called('a', '{"x":1}'), called('b', '')],
      },
      result('b', ''),
      result('a', [{ type: 'image_url', image_url: { url: PNG } }]),
      { role: 'user', content: 'And?' },
    ]
    expect(messagesOf(messages)).toEqual([
      ...HELLO,
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me see' },
          { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
          { type: 'tool_use', id: 'b', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'a',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }],
          },
          { type: 'tool_result', tool_use_id: 'b' },
          { type: 'text', text: 'And?' },
        ],
      },
    ])
  })

  it('carry refusals as text, and custom calls and arguments that are no object in one', () => {
    const messages = [
      ...HELLO,
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'a' },
          { type: 'refusal', refusal: 'b' },
        ],
        refusal: 'c',
      },
      ...HELLO,
      {
        role: 'assistant',
        tool_calls: [called('a', '[1]'), { id: 'b', type: 'custom', custom: { name: 'c', input: 'text' } }],
      },
      result('a'),
      result('b'),
    ]
    expect(messagesOf(messages)).toMatchObject([
      ...HELLO,
      { content: ['a', 'b', 'c'].map((text) => ({ type: 'text', text })) },
      ...HELLO,
      { content: [{ input: { arguments: '[1]' } }, { name: 'c', input: { input: 'text' } }] },
      { content: [{ tool_use_id: 'a' }, { tool_use_id: 'b' }] },
    ])
  })

  it('give the old form of calls an id of its place', () => {
    const messages = [
      ...HELLO,
      { role: 'assistant', function_call: { name: 'f', arguments: '{"a":1}' } },
      { role: 'function', name: 'f', content: 'r' },
    ]
    expect(messagesOf(messages)).toEqual([
      ...HELLO,
      { role: 'assistant', content: [{ type: 'tool_use', id: 'function_call_1', name: 'f', input: { a: 1 } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'function_call_1', content: 'r' }] },
    ])
  })

  it('have ids that the upstream takes, the same on both sides, and each but once', () => {
    const turn = [{ role: 'assistant', tool_calls: [called('call:0')] }, result('call:0')]
    const ids = [
      ...JSON.stringify(messagesOf([...HELLO, ...turn, ...turn])).matchAll(/"(?:tool_use_)?id":"([\w-]{1,64})"/g),
    ]
    const [first, answered, second, answeredAgain] = ids.map(([, id]) => id)
    expect(first).toMatch(/^t_[a-z2-7]{52}$/)
    expect([answered, answeredAgain]).toEqual([first, second])
    expect(second).not.toBe(first)
  })

  it('are answers as they came, pushed back by the loop of a client', () => {
    const answer = {
      role: 'assistant',
      content: 'Hi',
      refusal: null,
      annotations: [],
      audio: null,
      parsed: null,
      reasoning_content: 'Hm.',
      thinking_blocks: [THOUGHT],
    }
    const { sent, dropped } = translation({ messages: [...HELLO, answer, ...HELLO] }, { isStrict: true })
    expect(dropped).toBeUndefined()
    expect(sent['messages']).toEqual([
      ...HELLO,
      { role: 'assistant', content: [THOUGHT, { type: 'text', text: 'Hi' }] },
      ...HELLO,
    ])
  })

  it('go on with the beginning of an answer where the model does', () => {
    const messages = [...HELLO, { role: 'assistant', content: 'It is \n' }]
    expect(messagesOf(messages)).toEqual([...HELLO, { role: 'assistant', content: 'It is' }])
    expect(sentOf({ messages, reasoning_effort: 'low' })['thinking']).toBeUndefined()
    expect(refusalOf({ messages }, { facts: { thinking: 'adaptive' } }).details.param).toBe('messages[1]')
  })
})

it('A result of the old form whose name is an object is refused by its path', () => {
  const messages = [...HELLO, { role: 'function', name: { toString: 1 }, content: 'done' }]
  expect(refusalOf({ messages }).details.param).toBe('messages[1].name')
})

it('Two calls of one turn with the same id are answered in their order', () => {
  const messages = [
    ...HELLO,
    { role: 'assistant', tool_calls: [called('a'), called('a')] },
    result('a', 'first'),
    result('a', 'second'),
  ]
  const [, calls, results] = messagesOf(messages) as {
    content: { id?: string; tool_use_id?: string; content?: string }[]
  }[]
  const ids = calls?.content.map(({ id }) => id) ?? []
  expect(new Set(ids).size).toBe(2)
  expect(results?.content).toMatchObject([
    { tool_use_id: ids[0], content: 'first' },
    { tool_use_id: ids[1], content: 'second' },
  ])
})
