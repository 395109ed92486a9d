/** The code that is known at a step: all lines shown up to it, with the edits applied. */

import type { Breakpoint, Code, Frame, Step } from './types'

export interface Edit {
  step: number
  path: string
  diff: string
}

export interface CodeState {
  files: Map<string, Map<number, string>>
  /** The file that the last observation was about, and the line in it at which the program is stopped. */
  path: string | null
  current: number | null
  /** The lines that the last observation showed. */
  fresh: Set<number>
  /** What the debugged program does, as the debugger reported last: stopped, exited, ready; null where it did not. */
  program: string | null
  breakpoints: Breakpoint[]
  frames: Frame[]
  frame: number | null
  edits: Edit[]
}

interface Hunk {
  start: number
  length: number
  after: number
  lines: string[]
}

export function codeAt(steps: Step[], position: number): CodeState {
  const state: CodeState = {
    files: new Map(),
    path: null,
    current: null,
    fresh: new Set(),
    program: null,
    breakpoints: [],
    frames: [],
    frame: null,
    edits: [],
  }
  for (const step of steps.slice(0, position + 1)) {
    for (const { code } of step.observations) take(state, code, step.index)
  }
  return state
}

function take(state: CodeState, code: Code, step: number): void {
  if (code.breakpoints || code.frames || code.current !== undefined || code.state) {
    state.breakpoints = code.breakpoints ?? (code.state ? [] : state.breakpoints)
    state.frames = code.frames ?? []
    state.frame = code.frame ?? null
    state.program = code.state ?? 'stopped'
    state.current = null
  }
  if (!code.path) return
  if (code.diff !== undefined) {
    state.edits.push({ step, path: code.path, diff: code.diff })
    state.fresh = change(fileOf(state, code.path), code.diff)
    state.current = null
    state.frames = []
    // The debugger ends a program whose code was changed.
    if (state.program && code.path.endsWith('.py')) state.program = 'exited'
  } else {
    const file = fileOf(state, code.path)
    for (const [number, text] of code.lines ?? []) file.set(number, text)
    state.fresh = new Set((code.lines ?? []).map(([number]) => number))
    state.current = code.current ?? (state.path === code.path ? state.current : null)
  }
  state.path = code.path
}

function fileOf(state: CodeState, path: string): Map<number, string> {
  const file = state.files.get(path) ?? new Map<number, string>()
  state.files.set(path, file)
  return file
}

/** Carries a change out on the lines that are known. Returns the numbers of the new lines. */
function change(file: Map<number, string>, diff: string): Set<number> {
  const fresh = new Set<number>()
  for (const hunk of hunksOf(diff).reverse()) {
    const shift = hunk.lines.length - hunk.length
    const kept = [...file].filter(([number]) => number < hunk.start || number >= hunk.start + hunk.length)
    file.clear()
    for (const [number, text] of kept) file.set(number >= hunk.start + hunk.length ? number + shift : number, text)
    hunk.lines.forEach((text, index) => file.set(hunk.start + index, text.slice(1)))
    hunk.lines.forEach((text, index) => text.startsWith('+') && fresh.add(hunk.after + index))
  }
  return fresh
}

export function hunksOf(diff: string): Hunk[] {
  const hunks: Hunk[] = []
  for (const line of diff.split('\n')) {
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,\d+)? @@/.exec(line)
    const last = hunks.at(-1)
    if (head) {
      const length = Number(head[2] ?? 1)
      hunks.push({ start: Math.max(1, Number(head[1]) + (length === 0 ? 1 : 0)), length, after: Number(head[3]), lines: [] })
    } else if (last && (line.startsWith('+') || line.startsWith(' '))) {
      last.lines.push(line)
    }
  }
  return hunks
}

/** The known lines of a file in runs without a gap. */
export function runsOf(file: Map<number, string>): { start: number; lines: string[] }[] {
  const runs: { start: number; lines: string[] }[] = []
  for (const number of [...file.keys()].sort((a, b) => a - b)) {
    const last = runs.at(-1)
    if (last && last.start + last.lines.length === number) last.lines.push(file.get(number) ?? '')
    else runs.push({ start: number, lines: [file.get(number) ?? ''] })
  }
  return runs
}
