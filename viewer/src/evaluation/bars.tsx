/** One bar per arm, with its interval. */

import type { Evaluation, Measured } from '../types'
import { described, interval, written, type Choice, type Summary } from './measure'

interface Props {
  evaluation: Evaluation
  summary: Summary
  choice: Choice
  onChoose: (arm: string) => void
}

export function Bars({ evaluation, summary, choice, onChoose }: Props) {
  // An arm has the same color in every picture, whichever arms are shown.
  const arms = summary.arms.flatMap((arm, color) => (arm.groups[choice.group] ? [{ ...arm, color }] : []))
  const measures = arms.map((arm) => arm.groups[choice.group]?.[choice.metric] ?? null)
  const metric = evaluation.metrics[choice.metric]
  const most = metric?.unit === 'share' ? 1 : Math.max(...measures.map((one) => one?.high ?? 0), 1e-9)
  return (
    <ul class="arms">
      {arms.map((arm, index) => {
        const one = measures[index]
        const value = one?.value ?? null
        return (
          <li key={arm.name}>
            <button
              aria-pressed={choice.arm === arm.name && !choice.against}
              onClick={() => onChoose(arm.name)}
              aria-label={`${arm.title}: ${described(metric, one)}. Show the tasks behind it`}
            >
              <span class="label">{arm.title}</span>
              <svg viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
                <rect class="ground" x={0} y={0} width={100} height={20} />
                {value !== null && <rect class={`a${arm.color % 6}`} x={0} y={1} width={(100 * value) / most} height={10} />}
                {one && value !== null && <Whisker one={one} scale={(at) => (100 * at) / most} />}
              </svg>
              <span class="number">
                {written(metric, value)} <small>{interval(metric, one)}</small>
              </span>
            </button>
          </li>
        )
      })}
    </ul>
  )
}

/** An interval, as a line below the bar, where it is visible with every color. */
export function Whisker({ one, scale }: { one: Measured; scale: (value: number) => number }) {
  const [low, high] = [scale(one.low ?? 0), scale(one.high ?? 0)]
  return (
    <g class="whisker">
      <path d={`M${low} 16H${high}M${low} 13V19M${high} 13V19`} vector-effect="non-scaling-stroke" />
    </g>
  )
}
