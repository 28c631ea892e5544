import { HeaderAllowList } from '../../upstream/upstream-response.js'
import type { AttemptContext } from '../contract.js'

/** What P1 may tell the caller beyond the common list; its organisation, project and cookies stay inside. */
export const P1_RESPONSE_HEADERS = new HeaderAllowList('openai-processing-ms', 'openai-version', 'x-ratelimit-*')

/** Request headers for P1: the whole list, as nothing of the caller's own headers travels on. */
export function p1Headers({ credentials }: AttemptContext, contentType: string, accept: string): string[] {
  return ['authorization', `Bearer ${credentials}`, 'content-type', contentType, 'accept', accept]
}
