/** The rows of the list: filtered, sorted, counted. */

import { meets, valueOf, type Query, type Scope } from './filters'
import type { Distribution, Field, Numbers, Row, Value } from './types'

const PLOTTED = ['outcome', 'policy', 'project', 'source', 'view', 'split', 'episode outcome', 'agent', 'stop']
const PLOTTED_NUMBERS = ['steps', 'tokens', 'seconds', 'cost', 'confidence', 'failed calls']
/** In the order of the page, the most useful ones first. */
const ORDER = [...PLOTTED.slice(0, 1), ...PLOTTED_NUMBERS.slice(0, 4), ...PLOTTED.slice(1), ...PLOTTED_NUMBERS.slice(4)]
const CORE = ['source', 'task', 'project', 'policy', 'outcome', 'stop', 'created', 'id']
const CORE_NUMBERS = ['steps', 'tokens', 'cost', 'seconds']
const BINS = 24
const MOST_VALUES = 12

/** The rows of episodes, or those of datasets. */
export function inScope(rows: Row[], scope: Scope): Row[] {
  return rows.filter((row) => (row.kind === 'dataset') === (scope === 'rows'))
}

/** The rows that match a query, in its order; `found` are the keys of the episodes that contain its text, null without one. */
export function chosen(rows: Row[], query: Query, found: Set<string> | null): Row[] {
  return sorted(
    rows.filter((row) => (found?.has(row.key) ?? true) && meets(row, query.filters)),
    query.sort,
  )
}

/** The distribution of each plotted field, under all conditions except those on the field itself. */
export function distributions(rows: Row[], query: Query, found: Set<string> | null): Distribution[] {
  const searched = found ? rows.filter((row) => found.has(row.key)) : rows
  const all = searched.filter((row) => meets(row, query.filters))
  const filtered = new Set(query.filters.map((one) => one.field))
  const rest = (name: string) => (filtered.has(name) ? searched.filter((row) => meets(row, query.filters, name)) : all)
  const wanted = query.filters.map((one) => `${one.field}\n${one.value ?? ''}`)
  return ORDER.map((name) =>
    PLOTTED_NUMBERS.includes(name) ? histogram(name, rows, rest(name)) : valuesOf(name, rows, rest(name), wanted),
  ).filter((one) => one !== null)
}

/** Every field that can be filtered and sorted by. */
export function fieldsOf(rows: Row[]): Field[] {
  const known = new Map<string, boolean>()
  for (const row of rows) {
    for (const [name, value] of Object.entries(row.facts ?? {})) {
      if (value !== null) known.set(name, (known.get(name) ?? true) && typeof value === 'number')
    }
  }
  const core = [...CORE, ...CORE_NUMBERS].map((name) => ({ name, numeric: CORE_NUMBERS.includes(name) }))
  return [...core, ...[...known].sort().map(([name, numeric]) => ({ name, numeric }))]
}

function sorted(rows: Row[], sort: string): Row[] {
  const descending = sort.startsWith('-')
  const name = descending ? sort.slice(1) : sort
  const sign = descending ? -1 : 1
  const known = rows.map((row, number) => ({ row, number, value: valueOf(row, name) }))
  known.sort((a, b) => {
    if (a.row.live !== b.row.live) return a.row.live ? -1 : 1
    if ((a.value === null) !== (b.value === null)) return a.value === null ? 1 : -1
    return sign * (order(a.value, b.value) || a.number - b.number)
  })
  return known.map(({ row }) => row)
}

function order(a: Value, b: Value): number {
  if (a === null || b === null || a === b) return 0
  return a < b ? -1 : 1
}

function valuesOf(name: string, all: Row[], matching: Row[], wanted: string[]): Distribution | null {
  const every = counted(all, name)
  if ([...every.keys()].filter((value) => value !== '').length < 2) return null
  const some = counted(matching, name)
  const ranked = [...every].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
  const shown = ranked.filter(([value], number) => number < MOST_VALUES || wanted.includes(`${name}\n${value}`))
  return {
    name,
    kind: 'values',
    values: shown.map(([value, count]) => ({ value, count: some.get(value) ?? 0, all: count })),
    rest: ranked.length - shown.length,
  }
}

function counted(rows: Row[], name: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const row of rows) {
    const value = String(valueOf(row, name) ?? '')
    counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return counts
}

function histogram(name: string, all: Row[], chosen: Row[]): Numbers | null {
  const numbers = (rows: Row[]) => rows.map((row) => valueOf(row, name)).filter((value) => typeof value === 'number')
  const every = numbers(all)
  let [low, high, whole] = [Infinity, -Infinity, true]
  for (const value of every) {
    low = Math.min(low, value)
    high = Math.max(high, value)
    whole &&= Number.isInteger(value)
  }
  if (!(low < high)) return null
  const width = whole ? Math.max(1, Math.ceil(Math.trunc(high - low + 1) / BINS)) : (high - low) / BINS
  const bins = Math.min(BINS, Math.max(1, Math.trunc((high - low) / width) + (whole ? 1 : 0)))
  const counts = (values: number[]) => {
    const found = new Array<number>(bins).fill(0)
    for (const value of values) {
      const bin = Math.min(bins - 1, Math.trunc((value - low) / width))
      found[bin] = (found[bin] ?? 0) + 1
    }
    return found
  }
  return { name, kind: 'numbers', low, width, whole, counts: counts(numbers(chosen)), all: counts(every) }
}
