/** Every measure of every arm. */

import type { Arm, Metric } from '../types'
import { interval, titled, written, type Choice } from './measure'

interface Props {
  arms: Arm[]
  metrics: string[]
  meanings: Record<string, Metric>
  choice: Choice
  onChoose: (metric: string, arm: string) => void
}

export function AllMeasures({ arms, metrics, meanings, choice, onChoose }: Props) {
  return (
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th>Measure</th>
            {arms.map((arm) => (
              <th key={arm.name}>
                {arm.title}
                {arm.failed > 0 && <small class="bad"> {arm.failed} failed</small>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {metrics.map((metric) => (
            <tr key={metric} class={metric === choice.metric ? 'chosen' : ''}>
              <th scope="row" title={meanings[metric]?.help}>
                {titled(metric)}
              </th>
              {arms.map((arm) => {
                const one = arm.groups[choice.group]?.[metric]
                return (
                  <td key={arm.name} class="num">
                    {one && one.value !== null ? (
                      <button class="cell" onClick={() => onChoose(metric, arm.name)}>
                        <b>{written(meanings[metric], one.value)}</b> <small>{interval(meanings[metric], one)}</small>
                      </button>
                    ) : (
                      '–'
                    )}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
      <details>
        <summary class="note">What each measure means</summary>
        <dl class="facts">
          {metrics
            .filter((name) => meanings[name])
            .map((name) => (
              <div key={name}>
                <dt>{titled(name)}</dt>
                <dd>{meanings[name]?.help}</dd>
              </div>
            ))}
        </dl>
      </details>
    </div>
  )
}
