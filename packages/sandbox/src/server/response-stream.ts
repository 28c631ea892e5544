import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'

import { isSpoiling, type Fault, type SpoilingFault } from './faults.js'

export type Frame = string | Buffer
export type Frames = Iterable<Frame> | AsyncIterable<Frame>

/** Pause between pieces for the fault `slow`, in milliseconds. */
const SLOW_PIECE_MS = 50
/** Frames looked at in advance to find the middle of a stream whose length is unknown. */
const LOOKAHEAD_FRAMES = 8
const FRAMES_BEFORE_ERROR = 2

export interface DeliveryOptions {
  /** What replaces the rest of an event stream for the fault `errorframe`; none for bodies without frames. */
  readonly errorFrames: readonly string[]
  /** Pause between frames, in milliseconds. */
  readonly paceMs: number
  /** Called with each piece that was written. */
  readonly onWritten: (frame: Frame) => void
  /** Destroys the socket from our side. */
  readonly breakOff: () => void
}

/**
 * Writes the frames one by one with back-pressure, so that an answer of any length stays flat in memory, and stops as
 * soon as the caller is gone. A spoiling fault is applied on the way. The head must have been written before.
 */
export async function deliver(
  response: ServerResponse,
  frames: Frames,
  fault: Fault | undefined,
  options: DeliveryOptions,
): Promise<void> {
  if (!isSpoiling(fault)) {
    if (await writeAll(response, frames, options.paceMs, options.onWritten)) response.end()
  } else if (fault === 'slow') {
    if (await writeAll(response, frames, SLOW_PIECE_MS, options.onWritten)) response.end()
  } else if (fault === 'errorframe' && options.errorFrames.length > 0) {
    const head = await firstFrames(frames, FRAMES_BEFORE_ERROR)
    if (await writeAll(response, [...head, ...options.errorFrames], options.paceMs, options.onWritten)) response.end()
  } else {
    await deliverHalf(response, frames, fault, options)
  }
}

async function deliverHalf(
  response: ServerResponse,
  frames: Frames,
  fault: Exclude<SpoilingFault, 'slow'>,
  options: DeliveryOptions,
): Promise<void> {
  const head = await firstFrames(frames, LOOKAHEAD_FRAMES)
  const middle = Math.floor(head.length / 2)
  const whole = head.slice(0, middle)
  const next = Buffer.from(head[middle] ?? '')
  // A cut tears a frame apart; the gentler faults do so only when there is nothing but one frame to halve.
  const tearsFrame = fault === 'cut' || fault === 'errorframe' || middle === 0
  const sent = tearsFrame ? [...whole, next.subarray(0, Math.ceil(next.length / 2))] : whole
  if (!(await writeAll(response, sent, options.paceMs, options.onWritten))) return
  if (fault === 'stall') return
  if (fault === 'cleancut') response.end()
  else options.breakOff()
}

async function firstFrames(frames: Frames, count: number): Promise<Frame[]> {
  const head: Frame[] = []
  for await (const frame of frames) {
    head.push(frame)
    if (head.length >= count) break
  }
  return head
}

/** Returns false when the caller went away. */
async function writeAll(
  response: ServerResponse,
  frames: Frames,
  paceMs: number,
  onWritten: (frame: Frame) => void,
): Promise<boolean> {
  let first = true
  for await (const frame of frames) {
    if (frame.length === 0) continue
    if (paceMs > 0 && !first) await pause(paceMs)
    first = false
    if (response.destroyed) return false
    onWritten(frame)
    if (!(await writeFrame(response, frame))) return false
  }
  return !response.destroyed
}

/** Writes and waits until the socket has room again. */
async function writeFrame(response: ServerResponse, frame: Frame): Promise<boolean> {
  if (response.destroyed) return false
  if (!response.write(frame)) await roomOrClose(response)
  // A full turn of the event loop lets the bytes leave and a disconnect be seen before the next frame is made.
  await nextTurn()
  return !response.destroyed
}

function roomOrClose(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
