/** Conditions on episodes: as they are typed, as they stand in the address, and what they mean. */

import type { Field, Row, Value } from './types'

export type Operator = 'is' | 'not' | 'has' | '<' | '<=' | '>' | '>=' | 'unknown'

export interface Filter {
  field: string
  op: Operator
  value: Value
}

export interface Query {
  filters: Filter[]
  text: string
  sort: string
}

export const OPERATORS: [Operator, string][] = [
  ['is', 'is'],
  ['not', 'is not'],
  ['has', 'contains'],
  ['<', '<'],
  ['<=', '≤'],
  ['>', '>'],
  ['>=', '≥'],
  ['unknown', 'is unknown'],
]
const TYPED: Record<string, Operator> = { ':': 'is', '=': 'is', '!=': 'not', '~': 'has', '<': '<', '<=': '<=', '>': '>', '>=': '>=' }
const DEFAULT_SORT = '-created'

export function readQuery(params: URLSearchParams): Query {
  const filters = params.getAll('f').flatMap((text) => {
    const parts = text.split('|')
    const [field, op, ...value] = parts
    if (!field || !OPERATORS.some(([name]) => name === op)) return []
    return [{ field, op: op as Operator, value: value.join('|') }]
  })
  return { filters, text: params.get('q') ?? '', sort: params.get('sort') ?? DEFAULT_SORT }
}

export function writeQuery(query: Query): URLSearchParams {
  const params = new URLSearchParams()
  for (const { field, op, value } of query.filters) params.append('f', `${field}|${op}|${value ?? ''}`)
  if (query.text) params.set('q', query.text)
  if (query.sort !== DEFAULT_SORT) params.set('sort', query.sort)
  return params
}

/** What was typed: `steps>5 outcome:resolved "no such file"` is two conditions and a phrase to search for. */
export function readTyped(typed: string, fields: Field[]): { filters: Filter[]; text: string } {
  const filters: Filter[] = []
  const rest: string[] = []
  for (const word of typed.match(/[^\s"]*"[^"]*"|\S+/g) ?? []) {
    const match = /^([^:=!<>~"]+)(!=|<=|>=|[:=<>~])(.+)$/.exec(word)
    const field = match && fields.find((one) => one.name.replaceAll(' ', '-') === match[1] || one.name === match[1])
    const op = match && TYPED[match[2] ?? '']
    if (field && op) filters.push({ field: field.name, op, value: (match[3] ?? '').replaceAll('"', '') })
    else rest.push(word)
  }
  return { filters, text: rest.join(' ') }
}

/** Adds a condition; one that is there already is taken out instead, so that a click toggles it. */
export function toggled(filters: Filter[], filter: Filter): Filter[] {
  const rest = filters.filter((one) => !same(one, filter))
  return rest.length < filters.length ? rest : [...filters, filter]
}

/** The conditions with those on the range of one field replaced. */
export function ranged(filters: Filter[], field: string, range: Filter[]): Filter[] {
  return [...filters.filter((one) => one.field !== field || !/[<>]/.test(one.op)), ...range]
}

export function same(one: Filter, other: Filter): boolean {
  return one.field === other.field && one.op === other.op && String(one.value ?? '') === String(other.value ?? '')
}

export function describe({ field, op, value }: Filter): string {
  const sign = OPERATORS.find(([name]) => name === op)?.[1] ?? op
  return op === 'unknown' ? `${field} is unknown` : `${field} ${sign} ${value === '' ? 'unknown' : value}`
}

/** The value of a field of a row; null where it is unknown. */
export function valueOf(row: Row, field: string): Value {
  const own = (row as unknown as Record<string, Value>)[field]
  return (own !== undefined && field !== 'facts' ? own : row.facts?.[field]) ?? null
}

/** Whether a row meets all conditions but those on `without`, as the server decides it. */
export function meets(row: Row, filters: Filter[], without?: string): boolean {
  const names = new Set(filters.map((one) => one.field))
  for (const name of names) {
    if (name === without) continue
    const conditions = filters.filter((one) => one.field === name)
    const value = valueOf(row, name)
    const wanted = conditions.filter((one) => one.op === 'is').map((one) => String(one.value ?? ''))
    if (wanted.length && !wanted.includes(asText(value))) return false
    if (!conditions.every((one) => meetsOne(value, one))) return false
  }
  return true
}

function meetsOne(value: Value, { op, value: wanted, field }: Filter): boolean {
  if (op === 'is') return true
  if (op === 'not') return asText(value) !== String(wanted ?? '')
  if (op === 'has') return asText(value).toLowerCase().includes(String(wanted ?? '').toLowerCase())
  if (op === 'unknown') return value === null || value === ''
  if (value === null) return false
  const textual = ['created', 'id', 'task'].includes(field)
  const [left, right] = textual ? [String(value), String(wanted)] : [Number(value), wanted === '' ? NaN : Number(wanted)]
  if (op === '<') return left < right
  if (op === '<=') return left <= right
  return op === '>' ? left > right : left >= right
}

/** A number as SQLite writes it: 1.0 stays 1.0. */
function asText(value: Value): string {
  return value === null ? '' : String(value)
}
