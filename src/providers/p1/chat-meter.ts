import type { Units, Usage, UsageMeter } from '../../core/request-context.js'
import type { FrameCounter } from '../../upstream/sse-relay.js'
import type { ChatFields } from '../chat.contract.js'
import { estimatePromptTokens } from './prompt-estimate.js'

/**
 * What a chat completion has used as long as its upstream has not said so, which it does last of all: a token for each
 * piece of the answer that has arrived, and what the request probably cost. The request is not looked at before that.
 */
export class ChatMeter implements UsageMeter {
  constructor(
    private readonly request: Pick<ChatFields, 'messages' | 'tools'>,
    private readonly deltas?: Pick<FrameCounter, 'count'>,
  ) {}

  usageSoFar(): Usage {
    const prompt = estimatePromptTokens(this.request)
    const units = this.deltas === undefined ? { prompt_tokens: prompt } : tokens(prompt, this.deltas.count)
    return { units, estimated: true }
  }

  /** Of a stream its pieces, which are counted anyway. An answer that came whole is looked at for no figure beside its own. */
  counted(): Units | undefined {
    return this.deltas === undefined ? undefined : { completion_tokens: this.deltas.count }
  }
}

const tokens = (prompt: number, completion: number) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})
