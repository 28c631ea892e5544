import { describe, expect, it } from '@jest/globals'
import { countedUnits } from './counted-units.js'

describe('What was used, whatever the upstream calls it', () => {
  it.each([
    [
      'chat',
      {
        prompt_tokens: 28,
        completion_tokens: 125,
        total_tokens: 153,
        prompt_tokens_details: { cached_tokens: 4, audio_tokens: 17, text_tokens: 11, image_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 7, audio_tokens: 93, accepted_prediction_tokens: 0 },
      },
      {
        promptTokens: 28,
        cachedTokens: 4,
        audioInputTokens: 17,
        completionTokens: 125,
        audioOutputTokens: 93,
        reasoningTokens: 7,
      },
    ],
    [
      'chat that wrote to a cache',
      { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cache_write_tokens: 5 } },
      { promptTokens: 9, completionTokens: 1, cacheWriteTokens: 5 },
    ],
    [
      'messages, whose input does not hold what is cached',
      {
        input_tokens: 8,
        cache_creation_input_tokens: 30,
        cache_read_input_tokens: 200,
        cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
        output_tokens: 12,
        output_tokens_details: { thinking_tokens: 5 },
      },
      {
        promptTokens: 238,
        cachedTokens: 200,
        cacheWriteTokens: 30,
        cacheWriteHourTokens: 10,
        completionTokens: 12,
        reasoningTokens: 5,
      },
    ],
    [
      'responses',
      {
        input_tokens: 50,
        input_tokens_details: { cached_tokens: 20 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 3 },
      },
      { promptTokens: 50, cachedTokens: 20, completionTokens: 9, reasoningTokens: 3 },
    ],
    [
      'a realtime response',
      {
        total_tokens: 253,
        input_tokens: 132,
        output_tokens: 121,
        input_token_details: {
          cached_tokens: 74,
          text_tokens: 119,
          audio_tokens: 13,
          cached_tokens_details: { text_tokens: 64, audio_tokens: 10 },
        },
        output_token_details: { text_tokens: 30, audio_tokens: 91 },
      },
      {
        promptTokens: 132,
        cachedTokens: 74,
        cachedAudioTokens: 10,
        audioInputTokens: 13,
        completionTokens: 121,
        audioOutputTokens: 91,
      },
    ],
    [
      'a transcription billed by token',
      {
        total_tokens: 28,
        input_tokens: 17,
        input_token_details: { text_tokens: 0, audio_tokens: 17 },
        output_tokens: 11,
      },
      { promptTokens: 17, audioInputTokens: 17, completionTokens: 11 },
    ],
    [
      'the sums of a realtime session, with what was heard by another model',
      { input_tokens: 5, output_tokens: 7, input_transcription: { input_tokens: 3, output_tokens: 1, seconds: 2 } },
      { promptTokens: 8, completionTokens: 8, audioSeconds: 2 },
    ],
    ['a transcription billed by time', { seconds: 2 }, { audioSeconds: 2 }],
    ['a transcription measured by the gateway', { audio_seconds: 1.7 }, { audioSeconds: 1.7 }],
    ['speech billed by token', { input_tokens: 10, output_tokens: 93 }, { promptTokens: 10, completionTokens: 93 }],
    ['speech billed by character', { input_characters: 41 }, { characters: 41 }],
    ['speech by the name of one provider', { usage_characters: 41 }, { characters: 41 }],
    [
      'speech whose tokens are estimated from its characters',
      { input_tokens: 11, output_tokens: 46, total_tokens: 57, input_characters: 41 },
      { characters: 41 },
    ],
    ['a document', { documents: 1, pages: 12 }, { documents: 1, pages: 12 }],
    ['a video', { videos: 1 }, { videos: 1 }],
    ['images', { images: 4 }, { images: 4 }],
    ['zeros, which are figures', { prompt_tokens: 0, completion_tokens: 0 }, { promptTokens: 0, completionTokens: 0 }],
    ['what is not known', { credits: 3, total_tokens: 5 }, {}],
    ['figures that are no counts', { prompt_tokens: -1, completion_tokens: Infinity, seconds: Number.NaN }, {}],
    ['groups where figures are due and the other way round', { prompt_tokens: { a: 1 }, input_token_details: 3 }, {}],
    ['nothing', {}, {}],
  ])('%s', (_what, units, expected) => {
    expect(countedUnits(units)).toStrictEqual(expected)
  })
})
