import { createSign, generateKeyPairSync } from 'node:crypto'

/** DER (ITU-T X.690) tags of what a certificate is made of. */
const INTEGER = 0x02
const BIT_STRING = 0x03
const OBJECT_IDENTIFIER = 0x06
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17
const SEQUENCE = 0x30
const SET = 0x31

const ECDSA_WITH_SHA256 = '2a8648ce3d040302'
const COMMON_NAME = '550403'

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const identifier = (hex: string): Buffer => der(OBJECT_IDENTIFIER, Buffer.from(hex, 'hex'))
const utcTime = (time: string): Buffer => der(UTC_TIME, Buffer.from(time))
const bits = (content: Buffer): Buffer => der(BIT_STRING, Buffer.from([0]), content)

/** A certificate for tests (RFC 5280, version 1), signed with its own key. Nobody should trust it. */
export function selfSigned(name: string): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = der(SEQUENCE, identifier(ECDSA_WITH_SHA256))
  const subject = der(SEQUENCE, der(SET, der(SEQUENCE, identifier(COMMON_NAME), der(UTF8_STRING, Buffer.from(name)))))
  const validity = der(SEQUENCE, utcTime('200101000000Z'), utcTime('491231235959Z'))
  const subjectKey = publicKey.export({ type: 'spki', format: 'der' })
  const serial = der(INTEGER, Buffer.from([1]))
  const signed = der(SEQUENCE, serial, algorithm, subject, validity, subject, subjectKey)
  const signature = createSign('sha256').update(signed).sign(privateKey)
  const certificate = der(SEQUENCE, signed, algorithm, bits(signature)).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`,
  }
}
