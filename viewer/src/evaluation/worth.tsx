/** What the reports are worth to a solver: what was fixed, the uplift, what a fixed bug costs; and the tools of each arm. */

import { money, seconds, short, UNKNOWN } from '../format'
import type { Comparison, Evaluation, Measured } from '../types'
import { interval, written, type Summary } from './measure'

type Spending = [name: string, title: string, write: (value: number | null) => string]

const SPENDINGS: Spending[] = [
  ['tokens', 'Seeker tokens', short],
  ['solver_tokens', 'Solver tokens', short],
  ['cost', 'Seeker cost', money],
  ['solver_cost', 'Solver cost', money],
  ['seconds', 'Seeker time', seconds],
  ['solver_seconds', 'Solver time', seconds],
]

export function Worth({ evaluation, summary, group }: { evaluation: Evaluation; summary: Summary; group: string }) {
  const arms = summary.arms.filter((arm) => arm.groups[group]?.['solved']?.count)
  if (!arms.length) return null
  const spent = (name: string): Record<string, Measured> => ({
    ...summary.arms.find((arm) => arm.name === name)?.per_resolved?.[group],
    ...evaluation.timing[name]?.[group],
  })
  const paid = SPENDINGS.filter(([name]) => arms.some((arm) => known(spent(arm.name)[name])))
  const shares = ['solved', 'official', ...passes(arms.flatMap((arm) => Object.keys(arm.groups[group] ?? {})))]
  const shown = shares.filter((name) => arms.some((arm) => known(arm.groups[group]?.[name])))
  const baseline = summary.arms.find((arm) => arm.name === summary.baseline)?.title
  return (
    <section>
      <h2>What the reports are worth</h2>
      <p class="note">
        {summary.solver ? `Solver: ${summary.solver}. ` : ''}
        {baseline ? `Uplift is counted from “${baseline}”, task by task. ` : ''}
        Costs are totals over all tasks, per solved task.
      </p>
      <div class="wide">
        <table class="worth">
          <thead>
            <tr>
              <th>Arm</th>
              {shown.map((name) => (
                <th key={name} title={evaluation.metrics[name]?.help}>
                  {evaluation.metrics[name]?.title ?? name}
                </th>
              ))}
              <th>Uplift</th>
              {paid.map(([name, title]) => (
                <th key={name}>{title}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {arms.map((arm) => (
              <tr key={arm.name}>
                <th scope="row">{arm.title}</th>
                {shown.map((name) => (
                  <Figure key={name} one={arm.groups[group]?.[name]} write={(value) => written(name, value)} />
                ))}
                <Uplift one={summary.comparisons.find((one) => one.arm === arm.name && one.baseline === summary.baseline && one.metric === 'solved' && one.group === group)} />
                {paid.map(([name, , write]) => (
                  <Figure key={name} one={spent(arm.name)[name]} write={write} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Figure({ one, write }: { one: Measured | undefined; write: (value: number | null) => string }) {
  if (!one || one.value === null) return <td class="num">{UNKNOWN}</td>
  return (
    <td class="num">
      {write(one.value)}
      <small>
        {' '}
        {write(one.low)} to {one.high === null ? 'no upper bound' : write(one.high)}
      </small>
    </td>
  )
}

function Uplift({ one }: { one: Comparison | undefined }) {
  if (!one || one.difference.value === null) return <td class="num">{UNKNOWN}</td>
  const sign = one.difference.value > 0 ? '+' : ''
  return (
    <td class="num">
      {sign}
      {written('solved', one.difference.value)}
      <small>
        {' '}
        {interval('solved', one.difference)}; {one.better} better, {one.worse} worse
        {one.mcnemar_p !== null ? `, p ${one.mcnemar_p < 0.001 ? '< 0.001' : one.mcnemar_p.toFixed(3)}` : ''}
      </small>
    </td>
  )
}

export function Tools({ summary }: { summary: Summary }) {
  const arms = summary.arms.filter((arm) => Object.keys(arm.tools ?? {}).length)
  if (!arms.length) return null
  const names = [...new Set(arms.flatMap((arm) => Object.keys(arm.tools)))].sort()
  return (
    <section>
      <h2>Tool calls per episode</h2>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th>Arm</th>
              {names.map((name) => (
                <th key={name}>{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {arms.map((arm) => (
              <tr key={arm.name}>
                <th scope="row">{arm.title}</th>
                {names.map((name) => (
                  <td key={name} class="num">
                    {arm.tools[name] === undefined ? UNKNOWN : arm.tools[name].toFixed(1)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function known(one: Measured | undefined): boolean {
  return one !== undefined && one.value !== null
}

/** The pass@k of the largest k. */
function passes(names: string[]): string[] {
  const all = names.filter((name) => name.startsWith('pass@')).sort((a, b) => Number(b.slice(5)) - Number(a.slice(5)))
  return all.slice(0, 1)
}
