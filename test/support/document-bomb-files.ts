const LOCAL_HEADER = 0x04034b50
const CENTRAL_HEADER = 0x02014b50
const END_RECORD = 0x06054b50
const DEFLATED = 8

export interface ZipEntry {
  readonly name: string
  /** Deflated, without a frame. */
  readonly data: Uint8Array
  /** What the archive says it inflates to. */
  readonly claimedBytes: number
  /** Of what it inflates to; left out where nobody gets that far. */
  readonly checksum?: number
}

/** An archive that says of its entries whatever it is told to say. */
export function zipFile(entries: readonly ZipEntry[]): Buffer {
  const files: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const entry of entries) {
    const name = Buffer.from(entry.name)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(LOCAL_HEADER)
    writeSizes(local, 4, entry, name.length)
    files.push(local, name, Buffer.from(entry.data))
    const central = Buffer.alloc(46)
    central.writeUInt32LE(CENTRAL_HEADER)
    writeSizes(central, 6, entry, name.length)
    central.writeUInt32LE(offset, 42)
    directory.push(central, name)
    offset += local.length + name.length + entry.data.length
  }
  const central = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(END_RECORD)
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...files, central, end])
}

/** From "version needed" on, both kinds of header have the same fields. */
function writeSizes(
  header: Buffer,
  at: number,
  { data, claimedBytes, checksum = 0 }: ZipEntry,
  nameBytes: number,
): void {
  header.writeUInt16LE(20, at)
  header.writeUInt16LE(DEFLATED, at + 4)
  header.writeUInt32LE(checksum, at + 10)
  header.writeUInt32LE(data.length, at + 14)
  header.writeUInt32LE(claimedBytes, at + 18)
  header.writeUInt16LE(nameBytes, at + 22)
}
