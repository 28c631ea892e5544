/** Turns of the event loop that take so much of the processor each, one after the other, until they are stopped. */
export function endlessWork(turnMs: number): { stop(): void } {
  let isWorking = true
  const turn = (): void => {
    const { user, system } = process.cpuUsage()
    const endsAtMicroseconds = user + system + turnMs * 1000
    for (let used = 0; used < endsAtMicroseconds;) {
      const now = process.cpuUsage()
      used = now.user + now.system
    }
    if (isWorking) setImmediate(turn)
  }
  setImmediate(turn)
  return {
    stop: () => {
      isWorking = false
    },
  }
}
