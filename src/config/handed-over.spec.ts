import { deserialize, serialize } from 'node:v8'
import { describe, expect, it } from '@jest/globals'
import { handedOver } from './handed-over.js'
import { parseConfig } from './load-config.js'

/** As a message between processes comes: cloned, not as JSON. */
const sent = <T>(value: T): T => deserialize(serialize(value)) as T

describe('a configuration that another process has sent', () => {
  it('knows no name that is not in it, and cannot be changed', () => {
    const channel = '{id: a, provider: p1, baseUrl: "http://h", credentials: x, modelMap: {tts-1: up}}'
    const { channels } = handedOver(sent(parseConfig(`{channels: [${channel}]}`, {})))
    const names: Readonly<Record<string, unknown>> = channels[0]?.modelMap ?? {}
    expect(['tts-1', 'constructor', 'toString'].map((name) => names[name])).toEqual(['up', undefined, undefined])
    expect([names, channels[0], channels].every(Object.isFrozen)).toBe(true)
  })
})
