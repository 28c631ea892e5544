import { mapElements, type RawObject } from '../../core/json-object.js'
import { flattenAudio, nestAudio, OUTPUT_SETTINGS } from './audio-settings.js'
import { itemToBeta, itemToGa, shownItemToBeta } from './items.js'
import { modalitiesToBeta, modalitiesToGa } from './modalities.js'
import { DEFAULT_TEMPERATURE } from './session-objects.js'
import type { CallersWords } from './session-state.js'

/** A beta response, or the wish for one, with the keys of GA. */
export function responseToGa(response: RawObject): void {
  const modalities = response.get('modalities')
  nestAudio(response, OUTPUT_SETTINGS)
  if (modalities !== undefined) {
    response.set('modalities', modalitiesToGa(modalities))
    response.rename('modalities', 'output_modalities')
  }
  response.rename('max_response_output_tokens', 'max_output_tokens')
  response.take('temperature')
  for (const list of ['input', 'output']) mapList(response, list, itemToGa)
}

/** A GA wish for a response with the keys of beta, whose `max_output_tokens` has the same name here. */
export function responseToBeta(response: RawObject): void {
  renameForBeta(response, [])
  mapList(response, 'input', itemToBeta)
}

/** A GA response that a server shows, with the keys of beta and the caller's own words. */
export function shownResponseToBeta(response: RawObject, words: CallersWords, session: CallersWords): void {
  renameForBeta(response, [words.modalities, session.modalities])
  mapList(response, 'output', shownItemToBeta)
  if (!response.has('temperature')) response.set('temperature', words.temperature ?? DEFAULT_TEMPERATURE)
}

function renameForBeta(response: RawObject, callersWords: readonly (string | undefined)[]): void {
  const modalities = response.get('output_modalities')
  flattenAudio(response, OUTPUT_SETTINGS)
  if (modalities === undefined) return
  response.set('output_modalities', modalitiesToBeta(modalities, callersWords))
  response.rename('output_modalities', 'modalities')
}

function mapList(object: RawObject, name: string, edit: (item: Buffer) => Buffer): void {
  const list = object.get(name)
  if (list !== undefined) object.set(name, mapElements(list, edit))
}
