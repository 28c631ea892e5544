import multer from 'multer'
import { GatewayError } from '../core/gateway-error.js'

/** The file part passed its limit; `readBytes` of it had arrived by then. */
export function fileTooLarge(
  limitBytes: number,
  readBytes: number,
  kind: 'invalid_request' | 'payload_too_large' = 'invalid_request',
): GatewayError {
  const message = `Maximum file size (${limitBytes} bytes) exceeded (${readBytes} bytes read).`
  return new GatewayError(kind, message, { code: 'file_too_large', param: 'file' })
}

export function malformed(what: string, param?: string, cause?: unknown): GatewayError {
  const message = `The multipart body is malformed: ${what}.`
  return new GatewayError('invalid_request', message, { ...(param !== undefined && { param }), cause })
}

export function storageFailed(cause: unknown): never {
  throw new GatewayError('internal', 'The upload could not be stored.', { cause })
}

/** What the parser failed with, as an error of the house. Its texts are constants; nothing of the body is in them. */
export function asGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const what = error instanceof Error ? error.message.toLowerCase() : 'it cannot be parsed'
  return malformed(what, error instanceof multer.MulterError ? error.field : undefined, error)
}
