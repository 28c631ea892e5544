/** What an OpenAI-style upstream says when it refuses a request. Thrown by the judges, rendered by the simulator. */
export class OpenAiRejection extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly details: {
      readonly type?: string
      readonly param?: string | null
      readonly code?: string | null
      readonly headers?: Readonly<Record<string, string>>
      /** Keys beside `error`, as some transcription errors carry them. */
      readonly siblings?: Readonly<Record<string, unknown>>
    } = {},
  ) {
    super(message)
  }

  /** The error envelope; all four keys are always present. */
  get body(): Readonly<Record<string, unknown>> {
    const { type = 'invalid_request_error', param = null, code = null, siblings = {} } = this.details
    return { error: { message: this.message, type, param, code }, ...siblings }
  }
}

/** Refuses with 400 `invalid_request_error`. */
export function reject(message: string, param: string | null = null, code: string | null = null): never {
  throw new OpenAiRejection(400, message, { param, code })
}

export function unknownModel(model: string): OpenAiRejection {
  return new OpenAiRejection(404, `The model \`${model}\` does not exist or you do not have access to it.`, {
    code: 'model_not_found',
    headers: { 'content-type': 'application/json; charset=utf-8' },
  })
}

/** Judges a Bearer credential. Without `expectedKey` every key but `bad` is accepted. Throws the 401 of the upstream. */
export function judgeBearer(authorization: string | undefined, expectedKey: string | undefined): void {
  const key = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1]
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  if (key === undefined) {
    const hint = 'You need to provide your API key in an Authorization header using Bearer auth'
    const message = `You didn't provide an API key. ${hint} (i.e. Authorization: Bearer YOUR_KEY).`
    throw new OpenAiRejection(401, message, { headers })
  }
  const accepted = expectedKey === undefined ? key !== 'bad' : key === expectedKey
  if (accepted) return
  const masked = `${key.slice(0, 5)}***${key.slice(-2)}`
  const advice = 'You can find your API key at https://platform.openai.com/account/api-keys.'
  throw new OpenAiRejection(401, `Incorrect API key provided: ${masked}. ${advice}`, {
    code: 'invalid_api_key',
    headers,
  })
}
