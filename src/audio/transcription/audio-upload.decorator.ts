import { Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import { ApiBody, ApiConsumes } from '@nestjs/swagger'
import type { Request, Response } from 'express'
import { GatewayError } from '../../common/errors/gateway-error.js'
import { type Call, callOf } from '../../common/http/call.js'
import { type Exchange, HttpExchange } from '../../common/http/exchange.decorator.js'
import {
  type MultipartField,
  type MultipartUpload,
  receiveMultipart,
  type UploadedFile,
} from '../../common/http/multipart-upload.js'
import { continueIfAsked } from '../../common/http/request-body.js'
import { boundaryOf } from '../../common/http/upload-body.js'
import { DtoCheck } from '../../common/validation/dto-check.js'
import { ConfigStore } from '../../config/config-store.js'

/** Uploads come over slow lines; the server's own limit for a whole request is the same. */
const UPLOAD_TIMEOUT_MS = 120_000

/** A received form: its file, its fields as they came, and those the specification names, checked. */
export interface AudioUpload<Dto> {
  readonly file: UploadedFile
  readonly fields: readonly MultipartField[]
  readonly named: Dto
}

function audioUploadPipe<Dto extends object>(dto: Type<Dto>): Type<PipeTransform<Exchange, Promise<AudioUpload<Dto>>>> {
  @Injectable()
  class AudioUploadPipe implements PipeTransform<Exchange, Promise<AudioUpload<Dto>>> {
    private readonly check = new DtoCheck(dto)

    constructor(private readonly store: ConfigStore) {}

    async transform({ request, response }: Exchange): Promise<AudioUpload<Dto>> {
      const { audioBodyBytes, audioFileBytes } = this.store.current.limits
      // Whatever the headers alone tell is judged before a client that waits is told to send.
      boundaryOf(request, audioBodyBytes)
      continueIfAsked(request, response)
      const upload = await timed(request, () =>
        receiveMultipart(request, {
          bodyBytes: audioBodyBytes,
          fileBytes: audioFileBytes,
          bodyTimeoutMs: UPLOAD_TIMEOUT_MS,
        }),
      )
      removeWhenDone(upload, callOf(request), response)
      const named = await this.check.assert(namedFields(upload.fields))
      return { file: fileOf(upload), fields: upload.fields, named }
    }
  }
  return mixin(AudioUploadPipe)
}

/** A controller's multipart body with one audio file; the file is gone when the response is, however it ended. */
export function AudioUploadRequest(dto: Type<object>): ParameterDecorator {
  const parameter = HttpExchange(audioUploadPipe(dto))
  return (target, key, index) => {
    parameter(target, key, index)
    const descriptor = key === undefined ? undefined : Object.getOwnPropertyDescriptor(target, key)
    if (key === undefined || descriptor === undefined) return
    ApiConsumes('multipart/form-data')(target, key, descriptor)
    ApiBody({ type: dto })(target, key, descriptor)
  }
}

async function timed<Result>(request: Request, work: () => Promise<Result>): Promise<Result> {
  const startedAtMs = performance.now()
  try {
    return await work()
  } finally {
    callOf(request).log.receiveMs += performance.now() - startedAtMs
  }
}

/** Removing twice does no harm; a removal that fails is the operating system's to clean up, and must not end the process. */
function removeWhenDone(upload: MultipartUpload, call: Call, response: Response): void {
  const remove = (): void => {
    upload.remove().catch((error: unknown) => {
      call.log.failure ??= error
    })
  }
  response.once('close', remove)
  call.departure.onLeave(remove)
}

function namedFields(fields: readonly MultipartField[]): Record<string, unknown> {
  const named: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const { name, value } of fields) named[name] = value
  return named
}

function fileOf({ file }: MultipartUpload): UploadedFile {
  if (file !== undefined) return file
  throw new GatewayError('invalid_request', "Missing required parameter: 'file'.", {
    param: 'file',
    code: 'missing_required_parameter',
  })
}
