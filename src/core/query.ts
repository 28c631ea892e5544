/** A query string as Express parses it: text, or a list where a name stands more than once. */
export type Query = Readonly<Record<string, unknown>>
