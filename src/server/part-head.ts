const DISPOSITION_LINE = /^content-disposition:[^\r\n]*/im
const TYPE_LINE = /^content-type:[ \t]*([^\r\n]*)/im
const FILE_NAME = /;\s*filename\*?\s*=/i
const PARAMETER = /(;[ \t]*)([^=;\s]+)=("(?:[^"\\]|\\.)*"|[^;]*)/g
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * Puts quotes around disposition parameters that need them. Some clients send `filename=Assets\a.mp3` or
 * `filename=my file.mp3`, and the parser would pass over the whole part.
 */
export function repairPartHead(head: Buffer): Buffer {
  const text = head.toString('latin1')
  const line = DISPOSITION_LINE.exec(text)?.[0]
  if (line === undefined) return head
  const repaired = line.replace(PARAMETER, (whole: string, separator: string, key: string, value: string) => {
    const bare = value.trim()
    const isFine = bare === '' || bare.includes('"') || TOKEN.test(bare) || key.endsWith('*')
    return isFine ? whole : `${separator}${key}="${bare}"`
  })
  return repaired === line
    ? head
    : Buffer.from(
        text.replace(line, () => repaired),
        'latin1',
      )
}

/** Whether the part is a file's: it has a file name. */
export const isFileHead = (head: Buffer): boolean =>
  FILE_NAME.test(DISPOSITION_LINE.exec(head.toString('latin1'))?.[0] ?? '')

/** The Content-Type in a part's head, parameters included; '' when there is none. */
export const contentTypeIn = (head: Buffer): string => TYPE_LINE.exec(head.toString('latin1'))?.[1]?.trim() ?? ''
