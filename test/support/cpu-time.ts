/** Milliseconds of work of this process so far: on a busy machine the clock says more about the others. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
