/** The p value of a comparison, and why it can be large although the interval excludes zero. */

import type { Comparison } from '../types'

/** The smallest number of changed tasks that can give p below 0.05. */
const FEWEST = 6

/** p as it is written; empty where it was not computed. */
export function writtenP({ mcnemar_p: p }: Comparison): string {
  return p === null ? '' : `p ${p < 0.001 ? '< 0.001' : p.toFixed(3)}`
}

/** Shown where an interval excludes zero and p is not small. */
export function WhyLargeP({ comparisons }: { comparisons: Comparison[] }) {
  const seeming = comparisons.filter((one) => excludesZero(one) && one.mcnemar_p !== null && one.mcnemar_p >= 0.05)
  const first = seeming[0]
  if (!first) return null
  const changed = Math.min(...seeming.map((one) => one.better + one.worse))
  return (
    <details class="note why-p">
      <summary>Why is p not small where the interval excludes zero?</summary>
      They are two methods. The interval resamples the mean difference over all tasks; p is an exact
      McNemar test, which counts only the tasks whose outcome changed.{' '}
      {changed < FEWEST
        ? `With ${changed} changed ${changed === 1 ? 'task' : 'tasks'}, p cannot be below ${smallestP(changed)}: rely on p, and use more tasks. ${FEWEST} changed tasks are the fewest that can give p below 0.05.`
        : 'The two may disagree near the limit: treat the difference as unsure.'}
    </details>
  )
}

/** The p of n changed tasks that all changed in the same direction: 2 / 2ⁿ, at most 1. */
function smallestP(changed: number): string {
  return String(Number(Math.min(1, 2 / 2 ** changed).toPrecision(3)))
}

function excludesZero({ difference: { low, high } }: Comparison): boolean {
  return (low ?? 0) > 0 || (high ?? 0) < 0
}
