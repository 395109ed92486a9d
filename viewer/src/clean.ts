/** Makes the output of models and programs safe to show: control and formatting characters become visible symbols. */

const ACTING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g

const CONTROLS =
  'NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'.split(' ')

/** Control characters by their names (⟨ESC⟩), characters that turn or hide text as ⟨U+202E⟩. */
export function visible(text: string): string {
  return text.replace(ACTING, (character) => {
    const code = character.charCodeAt(0)
    const name = code === 0x7f ? 'DEL' : CONTROLS[code]
    return `\u27e8${name ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`}\u27e9`
  })
}

/** The same for every string in JSON data, including the names of fields. */
export function cleaned<T>(data: T): T {
  return walk(data) as T
}

function walk(data: unknown): unknown {
  if (typeof data === 'string') return visible(data)
  if (Array.isArray(data)) return data.map(walk)
  if (data === null || typeof data !== 'object') return data
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [visible(name), walk(value)]))
}
