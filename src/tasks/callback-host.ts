/** Host and port of a callback address, as the store compares them; empty for a text that is no URL. */
export const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : '')
