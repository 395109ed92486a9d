/** Splits text into pieces with a class each: colored code, changes, marked quotes and hits. Never HTML. */

import { classHighlighter, highlightCode } from '@lezer/highlight'
import { parser } from '@lezer/python'

export interface Piece {
  text: string
  kind: string
  mark?: string
}

export interface Mark {
  start: number
  end: number
  kind: string
}

const MOST_COLORED = 60_000

/** Python code line by line; code that is very long stays plain. */
export function pythonLines(code: string): Piece[][] {
  if (code.length > MOST_COLORED) return code.split('\n').map((text) => [{ text, kind: '' }])
  const lines: Piece[][] = [[]]
  highlightCode(
    code,
    parser.parse(code),
    classHighlighter,
    (text, classes) => lines.at(-1)?.push({ text, kind: classes }),
    () => lines.push([]),
  )
  return lines
}

/** The output of a tool: colored code in views and at stops, changes in diffs, plain text otherwise. */
export function piecesOf(tool: string, text: string): Piece[] {
  if (text.length > MOST_COLORED) return [{ text, kind: '' }]
  if (tool === 'view') return numbered(text, /^([* ] *\d+ ?)(.*)$/)
  if (tool === 'pdb') return numbered(text, /^((?:->|  ) *\d+ ?)(.*)$/)
  if (tool === 'rewrite') return diffPieces(text)
  if (tool === 'eval') return outcomes(text)
  return [{ text, kind: '' }]
}

export function diffPieces(text: string): Piece[] {
  const kinds: Record<string, string> = { '+': 'plus', '-': 'minus', '@': 'hunk' }
  return text.split('\n').flatMap((line, index, lines) => {
    const head = /^(\+\+\+|---|diff |index )/.test(line)
    return [{ text: index < lines.length - 1 ? `${line}\n` : line, kind: head ? 'meta' : kinds[line[0] ?? ''] ?? '' }]
  })
}

/** The places of the texts to mark. Any white space matches any other; of overlapping marks the first one wins. */
export function findMarks(text: string, wanted: { text: string; kind: string }[], every = false): Mark[] {
  const marks: Mark[] = []
  for (const { text: quote, kind } of wanted) {
    const words = quote.split(/\s+/).filter(Boolean).slice(0, 400)
    if (!words.length) continue
    const pattern = new RegExp(words.map(escaped).join('\\s+'), every ? 'gi' : 'g')
    for (const match of text.matchAll(pattern)) {
      const [start, end] = [match.index, match.index + match[0].length]
      if (marks.every((mark) => end <= mark.start || mark.end <= start)) marks.push({ start, end, kind })
      if (!every || marks.length > 500) break
    }
  }
  return marks.sort((a, b) => a.start - b.start)
}

/** The pieces, split where marks begin and end. */
export function marked(pieces: Piece[], marks: Mark[]): Piece[] {
  const found: Piece[] = []
  let place = 0
  let next = 0
  for (const piece of pieces) {
    let rest = piece.text
    while (rest) {
      while ((marks[next]?.end ?? Infinity) <= place) next++
      const mark = marks[next]
      const inside = mark && mark.start <= place
      const until = mark ? (inside ? mark.end : mark.start) - place : rest.length
      const text = rest.slice(0, until)
      found.push(inside ? { ...piece, text, mark: mark.kind } : { ...piece, text })
      rest = rest.slice(text.length)
      place += text.length
    }
  }
  return found
}

function numbered(text: string, pattern: RegExp): Piece[] {
  const lines = text.split('\n')
  const matches = lines.map((line) => pattern.exec(line))
  const code = matches.map((match) => match?.[2] ?? '').join('\n')
  const colored = pythonLines(code)
  return lines.flatMap((line, index) => {
    const match = matches[index]
    const end = index < lines.length - 1 ? '\n' : ''
    if (!match) return [{ text: line + end, kind: /^\w*(Error|Exception)\b/.test(line) ? 'wrong' : '' }]
    const head = match[1] ?? ''
    return [
      { text: head, kind: head.startsWith('->') ? 'number current' : head.startsWith('*') ? 'number break' : 'number' },
      ...(colored[index] ?? []),
      { text: end, kind: '' },
    ]
  })
}

function outcomes(text: string): Piece[] {
  return text.split('\n').map((line, index, lines) => {
    const kind = /^(FAILED|ERROR)\b/.test(line) ? 'wrong' : /^\d+ passed/.test(line) ? 'right' : ''
    return { text: index < lines.length - 1 ? `${line}\n` : line, kind }
  })
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
