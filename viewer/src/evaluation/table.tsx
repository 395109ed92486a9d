/** Every measure of every arm. */

import type { Arm } from '../types'
import { interval, titled, written, type Choice } from './measure'

export function AllMeasures({ arms, metrics, choice, onChoose }: { arms: Arm[]; metrics: string[]; choice: Choice; onChoose: (metric: string, arm: string) => void }) {
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
              <th scope="row">{titled(metric)}</th>
              {arms.map((arm) => {
                const one = arm.groups[choice.group]?.[metric]
                return (
                  <td key={arm.name} class="num">
                    {one && one.value !== null ? (
                      <button class="cell" onClick={() => onChoose(metric, arm.name)}>
                        <b>{written(metric, one.value)}</b> <small>{interval(metric, one)}</small>
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
    </div>
  )
}
