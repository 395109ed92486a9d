/** Small things that every view uses. */

import type { ComponentChildren } from 'preact'
import { format } from './address'
import { diffPieces, marked, type Mark, type Piece } from './text'
import type { Row } from './types'

export const DECISIONS: Record<string, string> = { s: 'seek', e: 'edit', v: 'verify', r: 'report', u: 'submit', '-': 'none' }

/** An episode's decisions as a coloured bar, each turn as wide as the others. */
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
    <ul class="legend" aria-label="Colours of decisions">
      {['seek', 'edit', 'verify', 'report', 'submit'].map((name) => (
        <li key={name}>
          <span class={`swatch b-${name}`} /> {name}
        </li>
      ))}
    </ul>
  )
}

/** What came out, with a sign as well as a colour. */
export function Outcome({ outcome, bare }: { outcome: string; bare?: boolean }) {
  const good = outcome === 'resolved' || outcome === 'reported'
  const bad = outcome === 'not resolved'
  const sign = good ? '✓' : bad ? '✗' : outcome === 'running' ? '●' : '■'
  const kind = good ? 'good' : bad ? 'bad' : outcome === 'running' ? 'running' : 'other'
  return (
    <span class={`outcome ${kind}`} title={outcome || 'unknown'}>
      <span aria-hidden="true">{sign}</span> <span class={bare ? 'only-read' : ''}>{outcome || 'unknown'}</span>
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

/** Text in pieces, with marks; nothing in it is ever read as HTML. */
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

/** A patch, without the lines that only git reads. */
export function Diff({ text }: { text: string }) {
  const read = text.trimEnd().replace(/^(diff --git |index [0-9a-f]).*\n/gm, '')
  return (
    <pre class="patch">
      <Pieces pieces={diffPieces(read)} />
    </pre>
  )
}

/** A place in the code, as `path:12–15`. */
export function place(path: string, start: number, end = start): string {
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

export function episodeAddress(row: Pick<Row, 'key'>, step?: number | null): string {
  return format('episode', [row.key], { step: step ?? null })
}

/** Tabs, each with its number as a key. The arrow keys stay with the steps. */
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
