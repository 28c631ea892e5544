const NAMES = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** The English name in lower case of an ISO 639-1 code, e.g. `de` → `german`; undefined for anything else. */
export function languageName(code: string): string | undefined {
  return /^[a-z]{2}$/.test(code) ? NAMES.of(code)?.toLowerCase() : undefined
}
