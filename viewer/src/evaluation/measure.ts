/** How measures are written: names, values, intervals. */

import { percent, short } from '../format'
import type { Evaluation, Measured } from '../types'

export type Summary = NonNullable<Evaluation['summary']>

/** What is shown: a group of tasks, a measure, and the bar whose tasks are listed, if one is chosen. */
export interface Choice {
  group: string
  metric: string
  /** The arm of the chosen bar; for a difference, `against` is the other arm. */
  arm: string | null
  against: string | null
}

/** Measures that are not shares of one. */
export const UNBOUNDED = /(^|_)(steps|tokens|cost|seconds|rank|debugger|brier|tries|repeats|named)$/
const FIRST = ['solved', 'line_recall', 'function_recall', 'file_recall', 'reciprocal_rank', 'valid_calls', 'grounding', 'quoted']

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

export function written(metric: string, value: number | null): string {
  return UNBOUNDED.test(metric) ? short(value) : percent(value)
}

export function interval(metric: string, one: Measured | null | undefined): string {
  if (!one || one.value === null) return ''
  return `${written(metric, one.low)} to ${written(metric, one.high)}`
}

/** A measure as a screen reader reads it. */
export function described(metric: string, one: Measured | null | undefined): string {
  return one && one.value !== null ? `${written(metric, one.value)}, from ${interval(metric, one)}, ${one.count} tasks` : 'not measured'
}
