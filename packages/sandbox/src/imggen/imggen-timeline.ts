export type ImggenStatus = 'NOT_START' | 'SUBMITTED' | 'MODAL' | 'IN_PROGRESS' | 'SUCCESS' | 'FAILURE'

/** What a task shows for a while. */
export interface ImggenStep {
  readonly status: ImggenStatus
  /** null: nothing is known yet. */
  readonly progress: string | null
  readonly hasImage: boolean
}

const step = (status: ImggenStatus, progress: string | null, hasImage = false): ImggenStep => ({
  status,
  progress,
  hasImage,
})

const NOT_START = step('NOT_START', null)
const MODAL = step('MODAL', '0%')
const SUBMITTED = step('SUBMITTED', '0%')
const FIRST_PREVIEW = [step('IN_PROGRESS', '0%'), step('IN_PROGRESS', '31%', true)]
const LATER_PREVIEWS = [step('IN_PROGRESS', '62%', true), step('IN_PROGRESS', '93%', true)]
const SUCCESS = step('SUCCESS', '100%', true)
const FAILURE = step('FAILURE', '')

/** The steps of a task one after the other. Without a last step that is an end, it stays at the last one for ever. */
export function timelineOf(prompt: string): readonly ImggenStep[] {
  const words = prompt.split(/\s+/u)
  const start = words.includes('#modal') ? [NOT_START, MODAL, SUBMITTED] : [NOT_START, SUBMITTED]
  if (words.includes('#fail')) return [...start, ...FIRST_PREVIEW, FAILURE]
  if (words.includes('#stuck')) return [...start, ...FIRST_PREVIEW]
  return [...start, ...FIRST_PREVIEW, ...LATER_PREVIEWS, SUCCESS]
}
