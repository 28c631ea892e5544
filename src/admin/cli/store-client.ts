import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { isNativeError } from 'node:util/types'
import axios, { type AxiosResponse } from 'axios'
import { unpackTar } from 'modern-tar/fs'
import { visibleDamage } from '../../storage/embedded-files.js'
import { causeOf, messageOf, NO_ADMINISTRATION, UNREACHABLE } from './key-client.js'

/** The store of a running gateway could not be had. The message tells the operator what to do. */
export class StoreDownloadFailure extends Error {
  override readonly name = 'StoreDownloadFailure'
}

/** A gateway that sends nothing for so long will not go on. */
const SILENCE_MS = 60_000

/** Unpacks the files of the embedded store of a running gateway into a new folder. Rejects with `StoreDownloadFailure`. */
export async function downloadSnapshot(url: string, adminKey: string, folder: string): Promise<void> {
  const response = await request(url, adminKey)
  if (response.status !== 200) throw new StoreDownloadFailure(await refusalOf(response))
  try {
    await pipeline(response.data, unpackTar(folder, { dmode: 0o700, fmode: 0o600, strict: true }))
  } catch (cause) {
    throw new StoreDownloadFailure(isOfArchive(cause) ? NO_STORE : CUT, { cause })
  }
  if ((await visibleDamage(folder)) !== undefined) throw new StoreDownloadFailure(NO_STORE)
}

const CUT = 'The gateway did not send its store to the end; nothing was kept.'
const NO_STORE = 'The answer is not the store of a gateway; nothing was kept. See that --url names the gateway itself.'
const SILENCE = 'the gateway is silent'

/** What the unpacker says of bytes that are no archive; errors of the network and of the disk have codes. */
const isOfArchive = (error: unknown): boolean => isNativeError(error) && !('code' in error) && error.message !== SILENCE

async function request(url: string, adminKey: string): Promise<AxiosResponse<IncomingMessage>> {
  try {
    const response = await axios.request<IncomingMessage>({
      url: `${url.replace(/\/+$/, '')}/admin/v1/store/backup`,
      method: 'POST',
      adapter: 'http',
      responseType: 'stream',
      headers: { authorization: `Bearer ${adminKey}` },
      maxRedirects: 0,
      proxy: false,
      validateStatus: null,
    })
    response.data.setTimeout(SILENCE_MS, () => response.data.destroy(new Error(SILENCE)))
    return response
  } catch (error) {
    throw new StoreDownloadFailure(UNREACHABLE, { cause: causeOf(error) })
  }
}

/** Far more than the gateway needs to refuse a download: a chunk of a socket has up to 64 KiB. */
const MAXIMUM_REFUSAL_CHUNKS = 4

async function refusalOf({ status, data }: AxiosResponse<IncomingMessage>): Promise<string> {
  if (status === 404) {
    data.destroy()
    return NO_ADMINISTRATION
  }
  const unknown = `The gateway answered with status ${status}.`
  try {
    const text = (await data.setEncoding('utf8').take(MAXIMUM_REFUSAL_CHUNKS).toArray()).join('')
    return messageOf(JSON.parse(text)) ?? unknown
  } catch {
    return unknown
  }
}
