/** How measures are written: names, values, intervals. */

import { money, percent, short } from '../format'
import type { Evaluation, Measured, Metric } from '../types'

export type Summary = NonNullable<Evaluation['summary']>

/** What is shown: a group of tasks, a measure, and the bar whose tasks are listed, if one is chosen. */
export interface Choice {
  group: string
  metric: string
  /** The arm of the chosen bar; for a difference, `against` is the other arm. */
  arm: string | null
  against: string | null
}

const FIRST = ['solved', 'line_recall', 'function_recall', 'file_recall', 'reciprocal_rank', 'valid_calls', 'grounding']

/** The measures that have a value in any arm, the most important ones first. */
export function metricsOf(summary: Summary): string[] {
  const measured = new Set<string>()
  for (const arm of summary.arms) {
    for (const of_group of Object.values(arm.groups)) {
      for (const [name, { value }] of Object.entries(of_group)) if (value !== null) measured.add(name)
    }
  }
  return [...FIRST.filter((name) => measured.delete(name)), ...measured]
}

export function titled(name: string): string {
  const words = name.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** A value as its measure's unit has it written; of a measure that nothing is known about, as a plain number. */
export function written(metric: Metric | undefined, value: number | null): string {
  if (metric?.unit === 'share') return percent(value)
  return metric?.unit === 'dollars' ? money(value) : short(value)
}

export function interval(metric: Metric | undefined, one: Measured | null | undefined): string {
  if (!one || one.value === null) return ''
  return `${written(metric, one.low)} to ${written(metric, one.high)}`
}

/** A measure as a screen reader reads it. */
export function described(metric: Metric | undefined, one: Measured | null | undefined): string {
  return one && one.value !== null ? `${written(metric, one.value)}, from ${interval(metric, one)}, ${one.count} tasks` : 'not measured'
}
