import { nearestName } from '../config/nearest-name.js'
import { documentedPath, PathTable } from '../core/endpoint.js'
import { quoted } from '../core/errors.js'
import { type KeyTest, maskedPath } from '../core/key-mask.js'

/** Paths of vendors' interfaces that clients try and that are not served, each with what serves the same, if anything does. */
export const NOT_SERVED: Readonly<Record<string, string>> = {
  '/v1/completions': 'Use /v1/chat/completions.',
  '/v1/complete': 'Use /v1/messages.',
  '/v1/messages/batches': '',
  '/v1/rerank': '',
  '/v1/moderations': '',
  '/v1/images': '',
  '/v1/videos': 'Use /vidgen/v1/videos/text2video.',
  '/v1/audio/voices': 'GET /v1/models shows the voices of each model.',
  '/v1/audio/voice_consents': '',
  '/v1/realtime/sessions': 'Open a WebSocket to /v1/realtime with the key itself.',
  '/v1/realtime/transcription_sessions': 'Open a WebSocket to /v1/realtime with the key itself.',
  '/v1/realtime/client_secrets': 'Open a WebSocket to /v1/realtime with the key itself.',
  '/v1/realtime/calls': 'Open a WebSocket to /v1/realtime.',
  '/v1/files': '',
  '/v1/uploads': '',
  '/v1/batches': '',
  '/v1/fine_tuning': '',
  '/v1/assistants': '',
  '/v1/threads': '',
  '/v1/conversations': 'Use /v1/responses with previous_response_id.',
  '/v1/vector_stores': '',
  '/v1/containers': '',
  '/v1/evals': '',
  '/v1/skills': '',
  '/v1/projects': '',
  '/vidgen/v1/videos/image2video': 'Use /vidgen/v1/videos/multi-image2video.',
  '/imggen/submit': 'Image tasks are created at their upstream and read here.',
  '/v1/organization': '',
  '/v1/organizations': '',
  '/v1beta/models': '',
  '/openai/deployments': 'Use the base URL of this gateway with /v1 and without a deployment.',
  '/api/chat': 'Use /v1/chat/completions.',
  '/api/generate': 'Use /v1/chat/completions.',
  '/api/embed': '',
  '/api/tags': 'Use /v1/models.',
  '/model': 'Use /v1/messages.',
}

/** Longer paths are no slip of the hand. */
const LONGEST_PATH_CHARACTERS = 128

/** Nothing is said of what is near: the balancer in front answers its public port so, whatever the path. */
const OPERATORS = /^\/admin(?:\/|$)/

const VERSION = '/v1'

interface Correction {
  readonly path: string
  /** What is wrong with the path that was asked for. */
  readonly reason: string
}

/** Tells a client that asked for a path without a route where it probably wanted to go. */
export class UnknownPaths {
  private readonly templates = new PathTable<string>()

  /** `paths` are templates with `:parameters`; no key of the gateway is shown. */
  constructor(
    private readonly paths: readonly string[],
    private readonly isKey: KeyTest = () => false,
  ) {
    for (const path of paths) this.templates.set(path, path)
  }

  /** One to three sentences that name the path, the nearest one that is served, and the page of the documents that helps. */
  describe(path: string, shownPath = path): string {
    const mask = (text: string): string => quoted(maskedPath(text, this.isKey))
    const shown = mask(shownPath)
    if (path.length > LONGEST_PATH_CHARACTERS || OPERATORS.test(path))
      return `There is nothing at ${shown}. ${CLIENTS_PAGE}`
    const corrections = correctionsOf(path, mask)
    for (const { path: corrected, reason } of corrections) {
      const template = this.templates.find(corrected)
      if (template !== undefined)
        return `There is nothing at ${shown}, but at ${documentedPath(template)}: ${reason} ${CLIENTS_PAGE}`
    }
    const advice = corrections.map((correction) => adviceFor(correction.path)).find((one) => one !== undefined)
    if (advice !== undefined) return `The path ${shown} is not served here. ${advice}${PROVIDERS_PAGE}`
    const near = nearestName(path, this.paths)
    const sentence = near === undefined ? '' : ` The nearest path is ${documentedPath(near)}.`
    return `There is nothing at ${shown}.${sentence} ${CLIENTS_PAGE}`
  }
}

const CLIENTS_PAGE = 'GET / leads to the documents; docs/clients.md has the base URL of each client.'
const PROVIDERS_PAGE = 'See docs/providers.md for what is, and what is not.'

/** Undefined for a path that no vendor is known to have. */
function adviceFor(path: string): string | undefined {
  const known = Object.keys(NOT_SERVED).find((prefix) => path === prefix || path.startsWith(`${prefix}/`))
  if (known === undefined) return undefined
  const advice = NOT_SERVED[known] ?? ''
  return advice === '' ? '' : `${advice} `
}

/** What the client may have meant, the likeliest first. */
function correctionsOf(path: string, mask: (text: string) => string): readonly Correction[] {
  const collapsed = path.replaceAll(/\/{2,}/g, '/')
  const trimmed = collapsed.length > 1 ? collapsed.replace(/\/$/, '') : collapsed
  const lower = trimmed.toLowerCase()
  const once = lower.replace(/^(?:\/v1){2,}(?=\/|$)/, VERSION)
  const slip =
    trimmed !== collapsed
      ? 'paths do not end with a slash.'
      : collapsed !== path
        ? 'a slash is doubled.'
        : 'paths are in lower case.'
  const beginnings = [...once.matchAll(/\//g)].map(({ index }) => index).filter((index) => index > 0)
  return [
    { path: once, reason: once === lower ? slip : 'the base URL of this client must not end with /v1.' },
    { path: `${VERSION}${once}`, reason: 'the base URL of this client must end with /v1.' },
    ...beginnings.map((index) => ({
      path: once.slice(index),
      reason: `paths do not begin with ${mask(once.slice(0, index))}.`,
    })),
  ]
}
