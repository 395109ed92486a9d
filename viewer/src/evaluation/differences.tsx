/** Paired differences: how arms differ from another arm on the same tasks. */

import { Empty } from '../parts'
import type { Comparison, Evaluation } from '../types'
import { Whisker } from './bars'
import { interval, written, type Choice, type Summary } from './measure'
import { WhyLargeP, writtenP } from './p_value'

interface Props {
  evaluation: Evaluation
  summary: Summary
  choice: Choice
  onChoose: (one: Comparison) => void
}

export function Differences({ evaluation, summary, choice, onChoose }: Props) {
  const metric = evaluation.metrics[choice.metric]
  const found = summary.comparisons.filter((one) => one.group === choice.group && one.metric === choice.metric)
  if (!found.length) return <Empty>Not computed for this measure.</Empty>
  const most = Math.max(...found.flatMap((one) => [Math.abs(one.difference.low ?? 0), Math.abs(one.difference.high ?? 0)]), 0.1)
  const scale = (value: number) => 50 + (50 * value) / most
  const title = (name: string) => summary.arms.find((arm) => arm.name === name)?.title ?? name
  return (
    <>
      <WhyLargeP comparisons={found} />
      <ul class="arms differences">
        {found.map((one) => {
          const { value } = one.difference
          const sign = (value ?? 0) > 0 ? '+' : ''
          return (
            <li key={`${one.arm}/${one.baseline}`}>
              <button
                aria-pressed={choice.arm === one.arm && choice.against === one.baseline}
                onClick={() => onChoose(one)}
                aria-label={`${title(one.arm)} against ${title(one.baseline)}: ${sign}${written(metric, value)}. Show the tasks behind it`}
              >
                <span class="label">
                  {title(one.arm)} <small>against {title(one.baseline)}</small>
                </span>
                <svg viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="ground" x={0} y={0} width={100} height={20} />
                  <path class="zero" d="M50 0V20" vector-effect="non-scaling-stroke" />
                  {value !== null && (
                    <>
                      <rect class={value >= 0 ? 'up' : 'down'} x={Math.min(50, scale(value))} y={1} width={Math.abs(scale(value) - 50)} height={10} />
                      <Whisker one={one.difference} scale={scale} />
                    </>
                  )}
                </svg>
                <span class="number">
                  {sign}
                  {written(metric, value)}{' '}
                  <small>
                    {interval(metric, one.difference)}; {one.better} better, {one.worse} worse
                    {one.mcnemar_p !== null && `, ${writtenP(one)}`}
                  </small>
                </span>
              </button>
            </li>
          )
        })}
      </ul>
    </>
  )
}
