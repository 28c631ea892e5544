import { readFileSync } from 'node:fs'

/** Of this gateway, as `package.json` has it. */
export function gatewayVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}
