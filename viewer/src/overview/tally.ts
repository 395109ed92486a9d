/** What the overview counts: the episodes of a source by outcome, and the rows of a dataset by view and split. */

import { qualityOf, type Quality } from '../parts'
import type { Row } from '../types'

export interface Tally {
  episodes: number
  outcomes: { outcome: string; quality: Quality; count: number }[]
  steps: number | null
  tokens: number | null
  cost: number | null
  /** When the last episode was made; empty where it is not known. */
  last: string
}

const ORDER: Quality[] = ['good', 'bad', 'other', 'running']

export function tallyOf(rows: Row[]): Tally {
  const outcomes = [...counted(rows, (row) => row.outcome)].map(([outcome, count]) => ({ outcome, quality: qualityOf(outcome), count }))
  return {
    episodes: rows.length,
    outcomes: outcomes.sort((a, b) => ORDER.indexOf(a.quality) - ORDER.indexOf(b.quality) || b.count - a.count),
    steps: rows.length ? sum(rows.map((row) => row.steps)) / rows.length : null,
    tokens: sumOfKnown(rows.map((row) => row.tokens)),
    cost: sumOfKnown(rows.map((row) => row.cost)),
    last: rows.reduce((last, row) => (row.created > last ? row.created : last), ''),
  }
}

export interface Part {
  view: string
  split: string
  rows: number
  /** How many episodes the rows were made from. */
  episodes: number
}

export function partsOf(rows: Row[]): Part[] {
  const parts = new Map<string, Part & { seen: Set<string> }>()
  for (const row of rows) {
    const [view, split] = [String(row.facts?.['view'] ?? ''), String(row.facts?.['split'] ?? '')]
    const part = parts.get(`${view}\n${split}`) ?? { view, split, rows: 0, episodes: 0, seen: new Set() }
    parts.set(`${view}\n${split}`, part)
    part.rows += 1
    part.episodes = part.seen.add(String(row.facts?.['episode'] ?? row.id)).size
  }
  return [...parts.values()]
}

export function bySource(rows: Row[]): Map<string, Row[]> {
  const found = new Map<string, Row[]>()
  for (const row of rows) {
    const own = found.get(row.source)
    if (own) own.push(row)
    else found.set(row.source, [row])
  }
  return found
}

function counted(rows: Row[], by: (row: Row) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const row of rows) counts.set(by(row), (counts.get(by(row)) ?? 0) + 1)
  return counts
}

function sumOfKnown(values: (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length ? sum(known) : null
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
