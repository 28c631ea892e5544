import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import axios, { AxiosError, type AxiosResponse, isAxiosError } from 'axios'
import { unpackTar } from 'modern-tar/fs'
import type { IssuedKeyDto, KeyChangeDto, KeyDto, KeyListDto, NewKeyDto } from '../keys.dto.js'
import { NO_SUCH_KEY } from '../keys.service.js'

/** Plain objects with the fields of the DTOs. */
export type NewKeyFields = Pick<NewKeyDto, keyof NewKeyDto>
export type KeyChangeFields = Pick<KeyChangeDto, keyof KeyChangeDto>

/**
 * Manages keys in the store or through a running gateway, with the DTOs of the admin API. Rejects with an `Error` whose
 * message is for the operator.
 */
export interface KeyAdmin {
  create(key: NewKeyFields): Promise<IssuedKeyDto>
  list(): Promise<readonly KeyDto[]>
  show(id: string): Promise<KeyDto>
  change(id: string, change: KeyChangeFields): Promise<KeyDto>
  revoke(id: string): Promise<KeyDto>
  close(): Promise<void>
}

/** A failure that the operator can correct. */
export class KeyAdminFailure extends Error {
  override readonly name = 'KeyAdminFailure'
}

const TIMEOUT_MS = 30_000
const PAGE = 1000
/** Far above the size of a page of keys. */
const MAXIMUM_RESPONSE_BYTES = 32 * 1024 * 1024
/** Redirects that a client would follow. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Manages keys through the admin API of a running gateway. */
export class HttpKeyAdmin implements KeyAdmin {
  private readonly base: string

  /** `url` is the gateway's address, with the path prefix of a proxy if there is one. */
  constructor(
    url: string,
    private readonly adminKey: string,
    private readonly timeoutMs = TIMEOUT_MS,
  ) {
    this.base = `${url.replace(/\/+$/, '')}/admin/v1/keys`
  }

  create(key: NewKeyFields): Promise<IssuedKeyDto> {
    return this.request('POST', '', key) as Promise<IssuedKeyDto>
  }

  async list(): Promise<readonly KeyDto[]> {
    const listed: KeyDto[] = []
    for (;;) {
      const after = listed.at(-1)?.id
      const query = after === undefined ? '' : `&after=${encodeURIComponent(after)}`
      const { data, has_more: hasMore } = (await this.request('GET', `?limit=${PAGE}${query}`)) as KeyListDto
      listed.push(...data)
      if (!hasMore) return listed
    }
  }

  show(id: string): Promise<KeyDto> {
    return this.request('GET', `/${encodeURIComponent(id)}`) as Promise<KeyDto>
  }

  change(id: string, change: KeyChangeFields): Promise<KeyDto> {
    return this.request('PATCH', `/${encodeURIComponent(id)}`, change) as Promise<KeyDto>
  }

  revoke(id: string): Promise<KeyDto> {
    return this.request('DELETE', `/${encodeURIComponent(id)}`) as Promise<KeyDto>
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  private async request(method: string, path: string, body?: object): Promise<unknown> {
    const { status, data } = await this.send(method, path, body)
    if (status >= 200 && status < 300 && typeof data === 'object') return data
    const message = messageOf(data)
    if (status === 404 && message !== NO_SUCH_KEY) throw new KeyAdminFailure(NO_ADMINISTRATION)
    throw new KeyAdminFailure(message ?? `The gateway answered with status ${status}.`)
  }

  private async send(method: string, path: string, body: object | undefined): Promise<AxiosResponse<unknown>> {
    try {
      return await axios.request<unknown>({
        url: `${this.base}${path}`,
        method,
        adapter: 'http',
        headers: {
          authorization: `Bearer ${this.adminKey}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        data: body,
        // A redirect, or a proxy named by the environment, would receive the admin key.
        maxRedirects: 0,
        proxy: false,
        validateStatus: (status) => !REDIRECTS.has(status),
        maxContentLength: MAXIMUM_RESPONSE_BYTES,
        signal: AbortSignal.timeout(this.timeoutMs),
      })
    } catch (error) {
      throw failureOf(error)
    }
  }
}

/** A gateway that sends nothing for so long will not go on. */
const SILENCE_MS = 60_000

/** Unpacks the files of the embedded store of a running gateway into a new folder. */
export async function downloadSnapshot(url: string, adminKey: string, folder: string): Promise<void> {
  let response: AxiosResponse<IncomingMessage>
  try {
    response = await axios.request<IncomingMessage>({
      url: `${url.replace(/\/+$/, '')}/admin/v1/store/backup`,
      method: 'POST',
      adapter: 'http',
      responseType: 'stream',
      headers: { authorization: `Bearer ${adminKey}` },
      maxRedirects: 0,
      proxy: false,
      validateStatus: null,
    })
    response.data.setTimeout(SILENCE_MS, () => response.data.destroy(new Error('the gateway is silent')))
  } catch (error) {
    throw failureOf(error)
  }
  if (response.status !== 200) throw new KeyAdminFailure(await refusalOf(response))
  try {
    await pipeline(response.data, unpackTar(folder, { dmode: 0o700, fmode: 0o600 }))
  } catch (cause) {
    throw new KeyAdminFailure('The gateway did not send its store to the end; nothing was kept.', { cause })
  }
}

async function refusalOf({ status, data }: AxiosResponse<IncomingMessage>): Promise<string> {
  if (status === 404) {
    data.destroy()
    return NO_ADMINISTRATION
  }
  const text = (await data.setEncoding('utf8').take(LONGEST_REFUSAL).toArray()).join('')
  try {
    return messageOf(JSON.parse(text)) ?? `The gateway answered with status ${status}.`
  } catch {
    return `The gateway answered with status ${status}.`
  }
}

/** In pieces. */
const LONGEST_REFUSAL = 4

// An AxiosError holds the request with its admin key: only its cause is kept.
function failureOf(error: unknown): KeyAdminFailure {
  const isTooLarge = isAxiosError(error) && error.code === AxiosError.ERR_BAD_RESPONSE && error.response === undefined
  const message = isTooLarge
    ? `The gateway answered with more than ${MAXIMUM_RESPONSE_BYTES} bytes.`
    : 'The gateway that --url names cannot be reached.'
  return new KeyAdminFailure(message, { cause: isAxiosError(error) ? error.cause : error })
}

const NO_ADMINISTRATION =
  'There is no admin interface at the address that --url names: set auth.adminKey in the configuration of the gateway, and name ' +
  'the gateway itself where a load balancer keeps /admin to itself.'

function messageOf(answer: unknown): string | undefined {
  const error = typeof answer === 'object' && answer !== null && 'error' in answer ? answer.error : undefined
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined
  return typeof message === 'string' ? message : undefined
}
