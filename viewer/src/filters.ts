/** Conditions on episodes: parsed from the search field and from the address, and evaluated. */

import type { Field, Row, Source, Value } from './types'

export type Operator = 'is' | 'not' | 'has' | '<' | '<=' | '>' | '>=' | 'unknown'

export interface Filter {
  field: string
  op: Operator
  value: Value
}

/** Whether the list shows episodes, or the rows of datasets that were made from them. */
export type Scope = 'episodes' | 'rows'

export interface Query {
  filters: Filter[]
  text: string
  sort: string
  /** Names of fields; empty: the usual columns. */
  columns: string[]
  /** null: what the other conditions ask for. */
  scope: Scope | null
}

export const EVERYTHING: Query = { filters: [], text: '', sort: '-created', columns: [], scope: null }

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
/** A condition as it is typed: name, sign, value. */
const CONDITION = /^([^:=!<>~"]+)(!=|<=|>=|[:=<>~])(.+)$/
const TYPED: Record<string, Operator> = { ':': 'is', '=': 'is', '!=': 'not', '~': 'has', '<': '<', '<=': '<=', '>': '>', '>=': '>=' }

export function readQuery(params: URLSearchParams): Query {
  const filters = params.getAll('f').flatMap((text) => {
    const parts = text.split('|')
    const [field, op, ...value] = parts
    if (!field || !OPERATORS.some(([name]) => name === op)) return []
    return [{ field, op: op as Operator, value: value.join('|') }]
  })
  const scope = params.get('of')
  return {
    filters,
    text: params.get('q') ?? '',
    sort: params.get('sort') ?? EVERYTHING.sort,
    columns: params.getAll('c').filter(Boolean),
    scope: scope === 'episodes' || scope === 'rows' ? scope : null,
  }
}

export function writeQuery(query: Query): URLSearchParams {
  const params = new URLSearchParams()
  for (const { field, op, value } of query.filters) params.append('f', `${field}|${op}|${value ?? ''}`)
  if (query.text) params.set('q', query.text)
  if (query.sort !== EVERYTHING.sort) params.set('sort', query.sort)
  for (const name of query.columns) params.append('c', name)
  if (query.scope) params.set('of', query.scope)
  return params
}

/** The list of one source. */
export function sourceQuery(slug: string): string {
  return `#/list?${writeQuery({ ...EVERYTHING, filters: [{ field: 'source', op: 'is', value: slug }] })}`
}

/** What a query lists: dataset rows where it names datasets only, or where there is nothing else; else episodes. */
export function scopeOf(query: Query, sources: Source[]): Scope {
  if (query.scope) return query.scope
  const slugs = query.filters.filter((one) => one.field === 'source' && one.op === 'is').map((one) => one.value)
  const named = sources.filter((source) => slugs.includes(source.slug))
  const asked = named.length ? named : sources
  return asked.some((source) => source.kind === 'run') ? 'episodes' : 'rows'
}

/** Splits the search field: `steps>5 outcome:resolved "no such file"` is two conditions and a phrase to search for. */
export function readTyped(typed: string, fields: Field[]): { filters: Filter[]; text: string } {
  const filters: Filter[] = []
  const rest: string[] = []
  for (const word of words(typed)) {
    const [, name = '', sign = '', value = ''] = CONDITION.exec(word) ?? []
    const field = fieldNamed(name, fields)
    const op = TYPED[sign]
    if (field && op) filters.push({ field: field.name, op, value: value.replaceAll('"', '') })
    else rest.push(word)
  }
  return { filters, text: rest.join(' ') }
}

/** The names in a query that look like fields and are none: `stpes>5`, but not `cart.py:12`, `a::b` or `"x=1"`. */
export function unknownFields(query: Query, fields: Field[]): string[] {
  const groups = fields.map((one) => one.name.split('.')[0] ?? '')
  const typed = words(query.text).flatMap((word) => {
    const [, name = '', sign, value = ''] = CONDITION.exec(word) ?? []
    const [group = '', member] = name.split('.')
    const plain = /^[a-z][\w-]*$/i.test(group) && (member === undefined || groups.includes(group))
    return plain && !(sign === ':' && /^[:/]/.test(value)) ? [name] : []
  })
  return [...new Set([...typed, ...query.filters.map((one) => one.field)])].filter((name) => !fieldNamed(name, fields))
}

/** The field whose name is most like another one; null where none is. */
export function nearestField(name: string, fields: Field[]): string | null {
  const ranked = fields.map((field) => ({ name: typedName(field.name), distance: editDistance(name.toLowerCase(), typedName(field.name)) }))
  const best = ranked.reduce((one, other) => (other.distance < one.distance ? other : one), { name: '', distance: Infinity })
  return best.distance <= Math.max(1, 0.4 * name.length) ? best.name : null
}

/** A field as it is typed: without spaces. */
export function typedName(name: string): string {
  return name.replaceAll(' ', '-')
}

function words(typed: string): string[] {
  return typed.match(/[^\s"]*"[^"]*"|\S+/g) ?? []
}

function fieldNamed(name: string, fields: Field[]): Field | undefined {
  return fields.find((one) => one.name === name || typedName(one.name) === name)
}

function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const changed = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Adds a condition, or removes it where it is set already, so that a click toggles it. */
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

/** Whether a row meets all conditions, except those on the field `without`. */
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

function asText(value: Value): string {
  return value === null ? '' : String(value)
}
