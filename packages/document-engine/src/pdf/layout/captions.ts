/** What begins the words below a table or a picture, and is no heading. */
export const CAPTION_PATTERN = /^(?:table|figure|fig\.|listing|algorithm|tabelle|abbildung|tableau|表|图|圖|図)\s*\d/iu
