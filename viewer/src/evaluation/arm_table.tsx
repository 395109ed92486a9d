/** A table with a row for each arm. */

import type { ComponentChildren } from 'preact'
import type { Arm } from '../types'

export interface ArmColumn {
  title: string
  help?: string | undefined
  cell: (arm: Arm) => ComponentChildren
}

export function ArmTable({ arms, columns, kind = '' }: { arms: Arm[]; columns: ArmColumn[]; kind?: string }) {
  return (
    <div class="wide">
      <table class={kind}>
        <thead>
          <tr>
            <th>Arm</th>
            {columns.map(({ title, help }) => (
              <th key={title} title={help}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {arms.map((arm) => (
            <tr key={arm.name}>
              <th scope="row">{arm.title}</th>
              {columns.map(({ title, cell }) => (
                <td key={title} class="num">
                  {cell(arm)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
