import { AddressRefused, admit, checkedLookup, isPublicAddress, readUrl, type ResolveHost } from './ssrf-guard.js'

/** One of each form that has led a guard astray somewhere; none may ever be fetched without an exemption. */
const FORBIDDEN_URLS = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://2130706433/',
  'http://017700000001/',
  'http://0x7f.0.0.1/',
  'http://0/',
  'http://127.0.0.1./',
  'http://10.0.0.1/',
  'http://100.64.0.1/',
  'http://169.254.169.254/',
  'http://172.16.0.1/',
  'http://192.168.0.1/',
  'http://224.0.0.1/',
  'http://255.255.255.255/',
  'http://[::]/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[2001:0:7f00:1::]/',
  'http://[fe80::1]/',
  'http://[fe80::1%25lo]/',
  'http://[fd00:ec2::254]/',
  'http://[ff02::1]/',
  'http://8.8.8.8@127.0.0.1/',
  'http://user:password@8.8.8.8/',
  'http://8.8.8.8:25/',
  'ftp://8.8.8.8/',
  'file:///etc/passwd',
] as const

const FORBIDDEN_ANSWERS = ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', '::ffff:127.0.0.1', 'fe80::1%lo'] as const
const PUBLIC_ADDRESS = '8.8.8.8'

/** The parts under test; tests of the test put weaker ones in their place. */
export interface GuardParts {
  readonly admit: (url: string) => void
  readonly lookup: typeof checkedLookup
}

const GUARD: GuardParts = { admit: (url) => admit(readUrl(url), []), lookup: checkedLookup }

/**
 * Tries the guard on known bad forms, without a network. Rejects when one of them gets through, or when nothing does: a
 * platform on which addresses are read otherwise must not serve.
 */
export async function assertGuardHolds(guard: GuardParts = GUARD): Promise<void> {
  for (const url of FORBIDDEN_URLS) {
    if (
      !isRefused(() => {
        guard.admit(url)
      })
    )
      throw new Error(`The guard of outgoing requests lets ${url} through.`)
  }
  guard.admit(`https://${PUBLIC_ADDRESS}/`)
  for (const address of FORBIDDEN_ANSWERS) {
    // Beside a public one, as attackers' name servers put it.
    if (await isLookedUp(guard, [PUBLIC_ADDRESS, address])) {
      throw new Error(`The guard of outgoing requests lets a host at ${address} through.`)
    }
  }
  if (!(await isLookedUp(guard, [PUBLIC_ADDRESS])))
    throw new Error('The guard of outgoing requests refuses every host.')
}

function isRefused(judge: () => void): boolean {
  try {
    judge()
    return false
  } catch (error) {
    if (error instanceof AddressRefused) return true
    throw error
  }
}

function isLookedUp({ lookup }: GuardParts, addresses: readonly string[]): Promise<boolean> {
  const resolve: ResolveHost = () =>
    Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))
  return new Promise((settle) => {
    lookup(resolve, isPublicAddress)('self-test.invalid', { all: true }, (error) => {
      settle(error === null)
    })
  })
}
