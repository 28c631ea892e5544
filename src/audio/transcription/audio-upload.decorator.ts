import { Injectable, mixin, type PipeTransform, type Type } from '@nestjs/common'
import { ApiBody, ApiConsumes } from '@nestjs/swagger'
import { GatewayError } from '../../common/errors/gateway-error.js'
import { callOf } from '../../common/http/call.js'
import { type Exchange, HttpExchange } from '../../common/http/exchange.decorator.js'
import { type MultipartUpload, receiveMultipart } from '../../common/http/multipart-upload.js'
import { type MultipartField, type UploadedFile } from '../../common/http/spooled-file.js'
import { continueIfAsked, roomFor } from '../../common/http/request-body.js'
import { SPOOL_MEMORY_BYTES } from '../../common/http/spooled-file.js'
import { boundaryOf } from '../../common/http/upload-body.js'
import { namedFields, releaseWhenDone, timedReception, UPLOAD_TIMEOUT_MS } from '../../common/http/upload-reception.js'
import { DtoCheck } from '../../common/validation/dto-check.js'
import { ConfigStore } from '../../config/config-store.js'

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
