import { Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import { ApiBody, ApiConsumes } from '@nestjs/swagger'
import { ConfigStore } from '../config/config-store.js'
import { DtoCheck } from '../core/dto-check.js'
import { GatewayError } from '../core/gateway-error.js'
import { callOf } from '../core/request-context.js'
import { type MultipartField, SPOOL_MEMORY_BYTES, type UploadedFile } from '../core/spooled-file.js'
import { type Exchange, HttpExchange } from '../server/exchange.decorator.js'
import { type MultipartUpload, receiveMultipart } from '../server/multipart.js'
import { continueIfAsked, roomFor } from '../server/read-body.js'
import { boundaryOf } from '../server/upload-body.js'
import { namedFields, releaseWhenDone, timedReception, UPLOAD_TIMEOUT_MS } from '../server/upload-reception.js'

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
      const room = roomFor(request, SPOOL_MEMORY_BYTES)
      continueIfAsked(request, response)
      const upload = await timedReception(request, () =>
        receiveMultipart(request, {
          bodyBytes: audioBodyBytes,
          fileBytes: audioFileBytes,
          bodyTimeoutMs: UPLOAD_TIMEOUT_MS,
          room,
        }),
      )
      releaseWhenDone(() => upload.remove(), callOf(request), response)
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

function fileOf({ file }: MultipartUpload): UploadedFile {
  if (file !== undefined) return file
  throw new GatewayError('invalid_request', "Missing required parameter: 'file'.", {
    param: 'file',
    code: 'missing_required_parameter',
  })
}
