import pg from 'pg'

/** The rows of one question, on a connection of its own that ends with it, also when the question is refused. */
export async function rowsOf<Row extends object>(
  databaseUrl: string,
  question: string,
  values: readonly string[] = [],
): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: databaseUrl })
  try {
    await client.connect()
    return (await client.query<Row>(question, [...values])).rows
  } finally {
    await client.end()
  }
}
