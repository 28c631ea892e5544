import type { P2Overlay } from './p2-metadata.js'

export interface P2RequestParts {
  readonly appId: string
  readonly accessToken: string
  readonly cluster: string
  /** Shown in the upstream's own logs. */
  readonly userId: string
  readonly voiceType: string
  readonly encoding: 'pcm' | 'mp3' | 'ogg_opus'
  /** 1 = as the voice speaks. */
  readonly speedRatio: number
  /** Of this synthesis alone: the upstream refuses one it has seen. */
  readonly reqid: string
  /** At most 1,024 bytes of UTF-8. */
  readonly text: string
  readonly model?: string | undefined
  readonly overlay: P2Overlay
}

const RATE_HZ = 24_000
/** Half a surrogate pair has no UTF-8; as a JSON escape it would reach the upstream and break there. */
const LONE_SURROGATE = /\p{Surrogate}/gu

/** The JSON of one streaming synthesis. The overlay lies over defaults and under everything else. */
export function p2Request(parts: P2RequestParts): Buffer {
  const { appId, accessToken, cluster, userId, voiceType, encoding, speedRatio, reqid, text, model, overlay } = parts
  return Buffer.from(
    JSON.stringify({
      app: { appid: appId, token: accessToken, cluster },
      user: { uid: userId },
      audio: { rate: RATE_HZ, ...overlay.audio, speed_ratio: speedRatio, voice_type: voiceType, encoding },
      request: {
        ...overlay.request,
        reqid,
        text: text.replace(LONE_SURROGATE, '\ufffd'),
        operation: 'submit',
        model,
      },
    }),
  )
}
