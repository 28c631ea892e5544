import { describe, expect, it } from '@jest/globals'
import { ResponsesTranslation } from '../../../../test/support/responses-translation.js'
import { type TranslationSetting } from '../../../../test/support/translation.js'
import { responsesOverChat } from '../responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from '../responses-over-messages/responses-over-messages.js'

const translators = [
  [
    'chat',
    (request: object, setting?: TranslationSetting) =>
      new ResponsesTranslation('chat', responsesOverChat, request, setting),
  ],
  [
    'messages',
    (request: object, setting?: TranslationSetting) =>
      new ResponsesTranslation('messages', responsesOverMessages, request, setting),
  ],
] as const

describe.each(translators)('A request for a response at a %s upstream', (_upstream, translate) => {
  it('marks nothing for the prompt cache where the caller hears that the mark is dropped', () => {
    const said = { type: 'output_text', text: 'Hello', prompt_cache_breakpoint: { mode: 'explicit' } }
    const input = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [said] },
      { role: 'user', content: 'Well?' },
    ]
    const { verdicts, sentText } = translate({ input }, { facts: { promptCacheBreakpoints: true } })
    expect(verdicts.dropped).toBe('input[1].content[0].prompt_cache_breakpoint')
    expect(sentText).not.toContain('cache')
  })
})
