/** Charts: cost and outcome, calibration, training loss. */

import { percent, short } from '../format'
import type { Arm } from '../types'
import type { Summary } from './measure'
import { Plot, type Curve } from './plot'

export function Pictures({ summary }: { summary: Summary }) {
  return (
    <div class="plots">
      <Cost summary={summary} />
      <Calibration summary={summary} />
      <Losses summary={summary} />
    </div>
  )
}

/** Dollars per task, or tokens where no costs are known, of seeker and solver together, and the share of solved tasks. */
function Cost({ summary }: { summary: Summary }) {
  for (const [name, unit] of [['cost', 'dollars'], ['tokens', 'tokens']] as const) {
    const curves = summary.arms.flatMap((arm, color): Curve[] => {
      const spent = spentBy(arm, name)
      const solved = arm.groups['all']?.['solved']
      if (spent === null || !solved || solved.value === null) return []
      const title = `${arm.title}: ${percent(solved.value)} solved, ${short(spent)} ${unit} per task`
      const interval = { low: solved.low ?? solved.value, high: solved.high ?? solved.value }
      return [{ color, points: [{ x: spent, y: solved.value, ...interval, label: arm.title, title }] }]
    })
    if (curves.length < 2) continue
    return (
      <Plot
        title="Cost and outcome"
        x={`${unit} per task, seeker and solver`}
        y="solved"
        curves={curves}
        most={{ y: 1 }}
        writeX={short}
        writeY={percent}
      />
    )
  }
  return null
}

function spentBy(arm: Arm, name: string): number | null {
  const both = [name, `solver_${name}`].map((metric) => arm.groups['all']?.[metric]?.value ?? null)
  return both.every((value) => value === null) ? null : both.reduce<number>((sum, value) => sum + (value ?? 0), 0)
}

function Calibration({ summary }: { summary: Summary }) {
  const known = summary.arms.filter((arm) => arm.calibration?.length)
  if (!known.length) return null
  const curves = summary.arms.flatMap((arm, color): Curve[] => {
    const most = Math.max(...(arm.calibration ?? []).map((bin) => bin.count))
    const points = (arm.calibration ?? []).map((bin) => ({
      x: bin.confidence,
      y: bin.right,
      size: 4 + 4 * Math.sqrt(bin.count / most),
      title: `${arm.title}: confidence ${percent(bin.confidence)}, right in ${percent(bin.right)} of ${bin.count}`,
    }))
    return points.length > 1 ? [{ color, points, joined: true }] : []
  })
  const legend = (
    <Legend
      entries={summary.arms.flatMap((arm, color) =>
        arm.calibration?.length
          ? [[color, `${arm.title}, expected error ${(arm.calibration_error ?? 0).toFixed(2)}${arm.calibration.length > 1 ? '' : ' (a single bin: no curve)'}`]]
          : [],
      )}
    />
  )
  if (!curves.length) return <section class="card"><h2>Calibration</h2>{legend}</section>
  return (
    <Plot
      title="Calibration"
      x="stated confidence"
      y="first location is right"
      curves={curves}
      most={{ x: 1, y: 1 }}
      writeX={percent}
      writeY={percent}
      diagonal
    >
      {legend}
    </Plot>
  )
}

function Losses({ summary }: { summary: Summary }) {
  const losses = (summary.losses ?? []).filter((one) => one.points.length > 1)
  if (!losses.length) return null
  const curves = losses.map(({ label, points }, color): Curve => {
    const shown = points.map(([x, y]) => ({ x, y, size: 0, title: `${label}: ${y.toFixed(3)} at step ${x}` }))
    return { color, points: shown, joined: true }
  })
  return (
    <Plot title="Training" x="step" y="loss" curves={curves} writeX={short} writeY={short}>
      <Legend entries={losses.map(({ label, points }, color) => [color, `${label} loss, last ${points.at(-1)?.[1].toFixed(2)}`])} />
    </Plot>
  )
}

function Legend({ entries }: { entries: [number, string][] }) {
  return (
    <ul class="legend">
      {entries.map(([color, text]) => (
        <li key={color}>
          <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
            <circle class={`a${color % 6}`} cx="5" cy="5" r="5" />
          </svg>{' '}
          {text}
        </li>
      ))}
    </ul>
  )
}
