/** What the reports are worth to a solver: solved tasks, uplift, costs per solved task; and the tools that each arm used. */

import { money, seconds, short, UNKNOWN } from '../format'
import type { Arm, Comparison, Evaluation, Measured, Metric } from '../types'
import { ArmTable, type ArmColumn } from './arm_table'
import { interval, written, type Summary } from './measure'
import { WhyLargeP, writtenP } from './p_value'

type Write = (value: number | null) => string

const SPENDINGS: [name: string, title: string, write: Write][] = [
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
  const baseline = summary.arms.find((arm) => arm.name === summary.baseline)?.title
  const uplifts = summary.comparisons.filter((one) => one.baseline === summary.baseline && one.metric === 'solved' && one.group === group)
  const uplift: ArmColumn = { title: 'Uplift', cell: (arm) => <Uplift one={uplifts.find((one) => one.arm === arm.name)} solved={evaluation.metrics['solved']} /> }
  return (
    <section>
      <h2>What the reports are worth</h2>
      <p class="note">
        {summary.solver ? `Solver: ${summary.solver}. ` : ''}
        {baseline ? `Uplift is the paired difference from “${baseline}”. ` : ''}
        Costs are totals over all tasks, per solved task.
      </p>
      <WhyLargeP comparisons={uplifts} />
      <ArmTable kind="worth" arms={arms} columns={[...shareColumns(evaluation, arms, group), uplift, ...costColumns(evaluation, arms, group)]} />
    </section>
  )
}

/** The measures of success that any arm has, and whether patches touch what was reported. */
function shareColumns(evaluation: Evaluation, arms: Arm[], group: string): ArmColumn[] {
  const names = ['solved', 'official', 'adherence', ...passes(arms.flatMap((arm) => Object.keys(arm.groups[group] ?? {})))]
  const measured = (arm: Arm, name: string) => arm.groups[group]?.[name]
  return names
    .filter((name) => arms.some((arm) => isKnown(measured(arm, name))))
    .map((name) => ({
      title: evaluation.metrics[name]?.title ?? name,
      help: evaluation.metrics[name]?.help,
      cell: (arm) => <Figure one={measured(arm, name)} write={(value) => written(evaluation.metrics[name], value)} />,
    }))
}

/** What a solved task costs, in each unit that any arm has. */
function costColumns(evaluation: Evaluation, arms: Arm[], group: string): ArmColumn[] {
  const spent = (arm: Arm): Record<string, Measured> => ({ ...arm.per_resolved?.[group], ...evaluation.timing[arm.name]?.[group] })
  return SPENDINGS.filter(([name]) => arms.some((arm) => isKnown(spent(arm)[name]))).map(([name, title, write]) => ({
    title,
    cell: (arm) => <Figure one={spent(arm)[name]} write={write} />,
  }))
}

function Figure({ one, write }: { one: Measured | undefined; write: Write }) {
  if (!one || one.value === null) return <>{UNKNOWN}</>
  return (
    <>
      {write(one.value)}
      <small>
        {' '}
        {write(one.low)} to {one.high === null ? 'no upper bound' : write(one.high)}
      </small>
    </>
  )
}

function Uplift({ one, solved }: { one: Comparison | undefined; solved: Metric | undefined }) {
  if (!one || one.difference.value === null) return <>{UNKNOWN}</>
  return (
    <>
      {one.difference.value > 0 ? '+' : ''}
      {written(solved, one.difference.value)}
      <small>
        {' '}
        {interval(solved, one.difference)}; {one.better} better, {one.worse} worse
        {one.mcnemar_p !== null && `, ${writtenP(one)}`}
      </small>
    </>
  )
}

export function Tools({ summary }: { summary: Summary }) {
  const arms = summary.arms.filter((arm) => Object.keys(arm.tools ?? {}).length)
  if (!arms.length) return null
  const names = [...new Set(arms.flatMap((arm) => Object.keys(arm.tools)))].sort()
  return (
    <section>
      <h2>Tool calls per episode</h2>
      <ArmTable arms={arms} columns={names.map((name) => ({ title: name, cell: (arm) => arm.tools[name]?.toFixed(1) ?? UNKNOWN }))} />
    </section>
  )
}

function isKnown(one: Measured | undefined): boolean {
  return one !== undefined && one.value !== null
}

/** The pass@k of the largest k. */
function passes(names: string[]): string[] {
  const all = names.filter((name) => name.startsWith('pass@')).sort((a, b) => Number(b.slice(5)) - Number(a.slice(5)))
  return all.slice(0, 1)
}
