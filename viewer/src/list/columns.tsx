/** The columns of the list: the usual ones, and any field that is chosen. */

import type { ComponentChildren } from 'preact'
import { valueOf } from '../filters'
import { count, money, moment, seconds, short, UNKNOWN } from '../format'
import { Outcome, Strip, Tampered } from '../parts'
import type { Field, Row } from '../types'
import { Menu } from './menu'

export interface Column {
  name: string
  title: string
  /** A track of a CSS grid. */
  width: string
  cell: (row: Row) => ComponentChildren
}

const USUAL: Column[] = [
  { name: 'outcome', title: 'Outcome', width: '8rem', cell: (row) => <Outcome outcome={row.outcome} /> },
  { name: 'task', title: 'Task', width: 'minmax(10rem, 3fr)', cell: (row) => <TaskCell row={row} /> },
  { name: 'policy', title: 'Policy', width: 'minmax(8.5rem, 1fr)', cell: (row) => row.policy || row.source },
  { name: 'strip', title: 'Decisions', width: 'minmax(7rem, 1.6fr)', cell: (row) => <Strip strip={row.strip} /> },
  { name: 'steps', title: 'Steps', width: '3.5rem', cell: (row) => count(row.steps) },
  { name: 'tokens', title: 'Tokens', width: '4.5rem', cell: (row) => (row.tokens ? short(row.tokens) : UNKNOWN) },
  { name: 'cost', title: 'Cost', width: '4.4rem', cell: (row) => money(row.cost) },
  { name: 'seconds', title: 'Time', width: '4.6rem', cell: (row) => seconds(row.seconds) },
  { name: 'created', title: 'Created', width: '9.2rem', cell: (row) => moment(row.created) },
]

function TaskCell({ row }: { row: Row }) {
  return (
    <>
      {row.facts?.['tampered'] === 'yes' && <Tampered title="Filter by it: tampered:yes" />}
      {row.task || row.id}
    </>
  )
}

export const USUAL_COLUMNS = USUAL.map((one) => one.name)

/** The columns with these names; the usual ones where there are none. */
export function columnsOf(names: string[]): Column[] {
  return (names.length ? names : USUAL_COLUMNS).map((name) => USUAL.find((one) => one.name === name) ?? fieldColumn(name))
}

function fieldColumn(name: string): Column {
  return { name, title: titleOf(name), width: 'minmax(5rem, 1fr)', cell: (row) => fieldText(row, name) }
}

function titleOf(name: string): string {
  return USUAL.find((one) => one.name === name)?.title ?? name.charAt(0).toUpperCase() + name.slice(1)
}

export function fieldText(row: Row, name: string): string {
  const value = valueOf(row, name)
  if (value === null || value === '') return UNKNOWN
  return typeof value === 'number' ? short(value) : value
}

/** A menu with a box to tick for every field. */
export function ColumnsMenu({ names, fields, set }: { names: string[]; fields: Field[]; set: (names: string[]) => void }) {
  const shown = names.length ? names : USUAL_COLUMNS
  const offered = [...USUAL_COLUMNS, ...fields.map((one) => one.name).filter((name) => !USUAL_COLUMNS.includes(name))]
  const toggle = (name: string) => {
    const next = shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name]
    set(next.length === USUAL_COLUMNS.length && next.every((one, at) => one === USUAL_COLUMNS[at]) ? [] : inOrder(next))
  }
  return (
    <Menu title="Columns">
      <ul class="choose-columns">
        {offered.map((name) => (
          <li key={name}>
            <label>
              <input type="checkbox" checked={shown.includes(name)} onChange={() => toggle(name)} /> {titleOf(name)}
            </label>
          </li>
        ))}
      </ul>
      <button onClick={() => set([])} disabled={!names.length}>
        Usual columns
      </button>
    </Menu>
  )
}

/** The usual columns first, in their order; the others as they were chosen. */
function inOrder(names: string[]): string[] {
  return [...USUAL_COLUMNS.filter((name) => names.includes(name)), ...names.filter((name) => !USUAL_COLUMNS.includes(name))]
}
