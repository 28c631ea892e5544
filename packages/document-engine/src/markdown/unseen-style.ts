/** What the style of an element says when nobody is to see it, as far as one attribute tells. */
export const UNSEEN_STYLE = /display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden/i
