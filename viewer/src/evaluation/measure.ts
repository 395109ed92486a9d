/** Measures in words: their names, their values, their intervals. */

import { percent, short } from '../format'
import type { Evaluation, Measured } from '../types'

export type Summary = NonNullable<Evaluation['summary']>

/** What is shown: measures of a group of tasks, and the bar whose tasks are listed, if one is chosen. */
export interface Choice {
  group: string
  metric: string
  /** The bar whose tasks are shown: an arm, or two of them for a difference. */
  arm: string | null
  against: string | null
}

/** Measures that are no shares of one. */
export const UNBOUNDED = /(^|_)(steps|tokens|cost|seconds|rank|debugger|brier|tries|repeats)$/
const FIRST = ['solved', 'line_recall', 'function_recall', 'file_recall', 'reciprocal_rank', 'valid_calls', 'grounding']

/** The measures that were measured anywhere, those that matter most in front. */
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

export function spoken(metric: string, one: Measured | null | undefined): string {
  return one && one.value !== null ? `${written(metric, one.value)}, from ${interval(metric, one)}, ${one.count} tasks` : 'not measured'
}
