/** The rows that are on the screen, out of all that match. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { format, go } from '../address'
import { writeQuery, type Query, type Scope } from '../filters'
import { count } from '../format'
import { useKeys, useWide } from '../hooks'
import { Empty, Legend, Wait } from '../parts'
import { columnsOf, ColumnsMenu, USUAL_COLUMNS } from './columns'
import { Head, RowLine } from './line'
import type { Table } from './use_table'
import { ViewsMenu } from './views'

const NAMES: Record<Scope, [string, string]> = { episodes: ['episode', 'episodes'], rows: ['dataset row', 'dataset rows'] }
/** Pixels of a row: on a wide screen, on a narrow one, and of the line that further columns take there. */
const [WIDE, NARROW, MORE] = [34, 62, 18]

/** Where each list was scrolled to, by its address. */
const scrolled = new Map<string, { top: number; chosen: number }>()

interface Props {
  query: Query
  scope: Scope
  set: (next: Partial<Query>) => void
  table: Table
}

export function Rows({ query, scope, set, table: { rows, elsewhere, fields, problem } }: Props) {
  const name = writeQuery({ ...query, columns: [] }).toString()
  const wide = useWide('(min-width: 60rem)')
  const columns = columnsOf(query.columns)
  const extended = columns.some((one) => !USUAL_COLUMNS.includes(one.name))
  const height = wide ? WIDE : NARROW + (extended ? MORE : 0)
  const total = rows?.length ?? null
  const [chosen, setChosen] = useState(scrolled.get(name)?.chosen ?? 0)
  const [span, setSpan] = useState<[number, number]>([0, 30])
  const scroller = useRef<HTMLDivElement>(null)

  /** The chosen row, ahead of the screen while keys come quickly. */
  const latest = useRef(chosen)
  const focusing = useRef(false)

  const measure = () => {
    const box = scroller.current
    if (!box) return
    setSpan([Math.max(0, Math.floor(box.scrollTop / height) - 8), Math.ceil((box.scrollTop + box.clientHeight) / height) + 8])
    scrolled.set(name, { top: box.scrollTop, chosen: latest.current })
  }
  // Layout effects run before a key can come: what it does is neither undone nor missed, however slow the browser is.
  useLayoutEffect(() => {
    if (total === null) return
    const before = scrolled.get(name)
    if (scroller.current && before) scroller.current.scrollTop = before.top
    measure()
    addEventListener('resize', measure)
    return () => removeEventListener('resize', measure)
  }, [total === null, height])
  useLayoutEffect(() => {
    const row = focusing.current ? scroller.current?.querySelector<HTMLElement>(`[data-index="${latest.current}"]`) : null
    if (!row) return
    focusing.current = false
    row.focus({ preventScroll: true })
  })

  const rowAt = (index: number) => rows?.[index]
  const choose = (index: number) => {
    const box = scroller.current
    if (!box || total === null) return
    const next = Math.min(Math.max(0, index), total - 1)
    latest.current = next
    focusing.current = true
    setChosen(next)
    if (next * height < box.scrollTop) box.scrollTop = next * height
    const room = box.clientHeight - (box.querySelector('.head')?.clientHeight ?? 0)
    if ((next + 1) * height > box.scrollTop + room) box.scrollTop = (next + 1) * height - room
    measure()
  }
  useKeys((key) => {
    const jump = Math.floor((scroller.current?.clientHeight ?? 400) / height) - 1
    const moves: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: jump, PageUp: -jump }
    const row = rowAt(latest.current)
    if (key === 'Home') choose(0)
    else if (key === 'End') choose((total ?? 1) - 1)
    else if (moves[key] !== undefined) choose(latest.current + (moves[key] ?? 0))
    else if (key === 'Enter' && row && !busyElsewhere()) go(format('episode', [row.key], { q: query.text }))
    else return false
    return true
  })
  const indices = Array.from({ length: Math.max(0, Math.min(span[1], total ?? 0) - span[0]) }, (_, n) => span[0] + n)
  return (
    <section class="rows" aria-label="Episodes" style={{ '--columns': columns.map((one) => one.width).join(' ') }}>
      <div class="above">
        <p class="total" role="status">
          {total === null ? 'Counting …' : many(total, scope)}
        </p>
        {elsewhere > 0 && (
          <button class="plain" onClick={() => set({ scope: otherThan(scope) })}>
            Show {many(elsewhere, otherThan(scope))}
          </button>
        )}
        <ColumnsMenu names={query.columns} fields={fields} set={(names) => set({ columns: names })} />
        <ViewsMenu query={query} />
        <Legend />
      </div>
      {problem !== null && <Wait problem={problem} />}
      <div class="scroller" ref={scroller} onScroll={measure} tabIndex={-1}>
        <Head columns={columns} query={query} set={set} />
        {total === 0 && <Empty>No matches.</Empty>}
        <ol style={{ height: `${(total ?? 0) * height}px` }}>
          {indices.map((index) => (
            <RowLine key={index} row={rowAt(index)} columns={columns} index={index} height={height} chosen={index === chosen} search={query.text} />
          ))}
        </ol>
      </div>
    </section>
  )
}

function otherThan(scope: Scope): Scope {
  return scope === 'rows' ? 'episodes' : 'rows'
}

function many(number: number, scope: Scope): string {
  return `${count(number)} ${NAMES[scope][number === 1 ? 0 : 1]}`
}

/** Whether Enter is for a button or a link other than a row. */
function busyElsewhere(): boolean {
  return document.activeElement?.matches('button, summary, a:not(.line)') ?? false
}
