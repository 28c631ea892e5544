import { RawObject } from '../../core/json-object.js'
import { type AudioSetting, OUTPUT_SETTINGS, SESSION_SETTINGS } from './audio-settings.js'

/** The same setting's path in both dialects. Beta formats are words: nothing lies below them. */
interface Paths {
  readonly beta: string
  readonly ga: string
  readonly isWord: boolean
}

const PATHS: readonly Paths[] = [
  ...audioPaths('session', SESSION_SETTINGS),
  ...audioPaths('response', OUTPUT_SETTINGS),
  { beta: 'session.modalities', ga: 'session.output_modalities', isWord: false },
  { beta: 'response.modalities', ga: 'response.output_modalities', isWord: false },
  { beta: 'session.max_response_output_tokens', ga: 'session.max_output_tokens', isWord: false },
]

export const pathToBeta = (path: string): string => mapped(path, 'ga', 'beta')

export const pathToGa = (path: string): string => mapped(path, 'beta', 'ga')

/**
 * An `error` event whose `param` names the field as the caller wrote it, in the message too where it stands in quotes.
 * The very same frame when there is nothing to map.
 */
export function withMappedParam(frame: Buffer, map: (path: string) => string): Buffer {
  const event = RawObject.parse(frame)
  const error = event?.object('error')
  const param = error?.text('param')
  if (event === undefined || error === undefined || param === undefined || map(param) === param) return frame
  error.setText('param', map(param))
  const message = error.text('message')
  if (message !== undefined)
    error.setText(
      'message',
      message.replaceAll(`'${param}'`, () => `'${map(param)}'`),
    )
  return event.toBuffer()
}

function mapped(path: string, from: 'beta' | 'ga', to: 'beta' | 'ga'): string {
  for (const paths of PATHS) {
    const rest = restBelow(path, paths[from])
    if (rest !== undefined) return paths[to] + (paths.isWord && to === 'beta' ? '' : rest)
  }
  return path
}

function restBelow(path: string, prefix: string): string | undefined {
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  return rest === '' || rest.startsWith('.') || rest.startsWith('[') ? rest : undefined
}

function audioPaths(owner: string, settings: readonly AudioSetting[]): Paths[] {
  return settings.map(({ beta, half, ga }) => ({
    beta: `${owner}.${beta}`,
    ga: `${owner}.audio.${half}.${ga}`,
    isWord: ga === 'format',
  }))
}
