/** Small components that every view uses. */

import type { ComponentChildren } from 'preact'
import { format } from './address'
import { diffPieces, marked, pythonLines, type Mark, type Piece } from './text'
import type { Row } from './types'

export const DECISIONS: Record<string, string> = { s: 'seek', e: 'edit', v: 'verify', r: 'report', u: 'submit', '-': 'none' }

/** An episode's decisions as a colored bar, one segment of equal width per turn. */
export function Strip({ strip, at }: { strip: string; at?: number }) {
  const shown = strip.slice(0, 200)
  const runs = [...shown.matchAll(/(.)\1*/g)].map((match) => `${DECISIONS[match[1] ?? '-']} ×${match[0].length}`)
  const width = 100 / Math.max(1, shown.length)
  return (
    <svg class="strip" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={runs.join(', ') || 'no turns'}>
      {[...shown].map((letter, index) => (
        <rect
          key={index}
          class={`d-${DECISIONS[letter] ?? 'none'}${index === at ? ' here' : ''}`}
          x={index * width + (width > 2 ? 0.25 : 0)}
          y={0}
          width={Math.max(0.2, width - (width > 2 ? 0.5 : 0))}
          height={10}
        />
      ))}
    </svg>
  )
}

export function Legend() {
  return (
    <ul class="legend" aria-label="Colors of decisions">
      {['seek', 'edit', 'verify', 'report', 'submit'].map((name) => (
        <li key={name}>
          <span class={`swatch b-${name}`} /> {name}
        </li>
      ))}
    </ul>
  )
}

export type Quality = 'good' | 'bad' | 'running' | 'other'

const QUALITIES: Record<string, Quality> = { resolved: 'good', hit: 'good', 'not resolved': 'bad', miss: 'bad', running: 'running' }
const SIGNS: Record<Quality, string> = { good: '✓', bad: '✗', running: '●', other: '■' }
const MEANINGS: Record<string, string> = {
  resolved: 'The tests pass with the patch',
  'not resolved': 'Tests fail with the patch, or there is none',
  hit: 'The report names a line that the gold patch changes',
  miss: 'The report names no line that the gold patch changes',
  reported: 'A report was made; the gold patch is not known here',
}

/** Whether an outcome is good. That a report was made is neither: it may name the wrong place. */
export function qualityOf(outcome: string): Quality {
  return QUALITIES[outcome] ?? 'other'
}

/** An outcome, with a sign as well as a color. */
export function Outcome({ outcome }: { outcome: string }) {
  const quality = qualityOf(outcome)
  return (
    <span class={`outcome ${quality}`} title={MEANINGS[outcome] ?? (outcome || 'unknown')}>
      <span aria-hidden="true">{SIGNS[quality]}</span> {outcome || 'unknown'}
    </span>
  )
}

/** Marks an episode in which the harness or the configuration of the tests was changed. */
export function Tampered({ title }: { title: string }) {
  return (
    <span class="tampered" title={title}>
      <span aria-hidden="true">⚠</span> tampered
    </span>
  )
}

export function Decision({ name }: { name: string | null }) {
  return <span class={`decision b-${name ?? 'none'}`}>{name ?? 'no decision'}</span>
}

/** Text in pieces, with marks. It is never parsed as HTML. */
export function Pieces({ pieces, marks = [] }: { pieces: Piece[]; marks?: Mark[] }) {
  return (
    <>
      {marked(pieces, marks).map((piece, index) =>
        piece.mark ? (
          <mark key={index} class={piece.mark}>
            <span class={piece.kind}>{piece.text}</span>
          </mark>
        ) : piece.kind ? (
          <span key={index} class={piece.kind}>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </>
  )
}

/** Python, with its colors. */
export function PythonCode({ text }: { text: string }) {
  const pieces = pythonLines(text.trimEnd()).flatMap((line, index) => (index ? [{ text: '\n', kind: '' }, ...line] : line))
  return (
    <pre class="python">
      <Pieces pieces={pieces} />
    </pre>
  )
}

/** A patch, without the header lines of git. */
export function Diff({ text }: { text: string }) {
  const read = text.trimEnd().replace(/^(diff --git |index [0-9a-f]).*\n/gm, '')
  return (
    <pre class="patch">
      <Pieces pieces={diffPieces(read)} />
    </pre>
  )
}

/** Lines of a file, as `path:12–15`. */
export function linesOf(path: string, start: number, end = start): string {
  return `${path}:${start}${end !== start ? `–${end}` : ''}`
}

export function Wait({ problem }: { problem?: string | null }) {
  return problem ? (
    <p class="problem" role="alert">
      {problem}
    </p>
  ) : (
    <p class="wait">Loading …</p>
  )
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>
}

/** The address of an episode; `position` counts its steps from 0. */
export function episodeAddress(row: Pick<Row, 'key'>, position?: number): string {
  return format('episode', [row.key], { step: position === undefined ? null : position + 1 })
}

/** The address of two episodes side by side. */
export function compareAddress(left: string, right: string, position?: number): string {
  return format('compare', [left, right], { step: position === undefined ? null : position + 1 })
}

/** Tabs, chosen by number keys, as the arrow keys move through the steps. */
export function Tabs({ tabs, chosen, onChoose }: { tabs: [string, string][]; chosen: string; onChoose: (name: string) => void }) {
  return (
    <div class="tabs" role="tablist">
      {tabs.map(([name, title], index) => (
        <button key={name} role="tab" aria-selected={name === chosen} onClick={() => onChoose(name)}>
          {title} <kbd aria-hidden="true">{index + 1}</kbd>
        </button>
      ))}
    </div>
  )
}
