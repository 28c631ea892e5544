import axios, { AxiosError, type AxiosResponse, isAxiosError } from 'axios'
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

function failureOf(error: unknown): KeyAdminFailure {
  const isTooLarge = isAxiosError(error) && error.code === AxiosError.ERR_BAD_RESPONSE && error.response === undefined
  const message = isTooLarge ? `The gateway answered with more than ${MAXIMUM_RESPONSE_BYTES} bytes.` : UNREACHABLE
  return new KeyAdminFailure(message, { cause: causeOf(error) })
}

/** An AxiosError holds the request with its admin key: only its cause is kept. */
export const causeOf = (error: unknown): unknown => (isAxiosError(error) ? error.cause : error)

export const UNREACHABLE = 'The gateway that --url names cannot be reached.'

export const NO_ADMINISTRATION =
  'There is no admin interface at the address that --url names: set auth.adminKey in the configuration of the gateway, and name ' +
  'the gateway itself where a load balancer keeps /admin to itself.'

/** What the gateway says in an error of its own; undefined of any other answer. */
export function messageOf(answer: unknown): string | undefined {
  const error = typeof answer === 'object' && answer !== null && 'error' in answer ? answer.error : undefined
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined
  return typeof message === 'string' ? message : undefined
}
