/** What a model called, for the step and for the messages. */

import { Pieces } from './parts'
import { pythonLines, type Piece } from './text'
import type { Call } from './types'

/** A call, its long texts as blocks of code. */
export function CallLine({ call }: { call: Call }) {
  if (call.error !== null) {
    return (
      <div class="call wrong">
        <p>This could not be read as a call: {call.error}</p>
        <pre>{call.raw ?? call.name}</pre>
      </div>
    )
  }
  const given = typeof call.arguments === 'object' && call.arguments !== null ? Object.entries(call.arguments) : []
  const long = given.filter(([, value]) => typeof value === 'string' && (value.includes('\n') || value.length > 80))
  const plain = given.filter((pair) => !long.includes(pair))
  return (
    <div class="call">
      <code>
        <b>{call.name}</b>({plain.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(', ')}
        {long.length > 0 ? (plain.length ? ', …' : '…') : ''})
      </code>
      {long.map(([name, value]) => (
        <div key={name} class="argument">
          <span>{name}</span>
          <pre>{name === 'code' ? <Pieces pieces={flat(pythonLines(String(value)))} /> : String(value)}</pre>
        </div>
      ))}
      {given.filter(([, value]) => typeof value === 'object' && value !== null && JSON.stringify(value).length > 200).length > 0 && (
        <details>
          <summary>Arguments in full</summary>
          <pre>{JSON.stringify(call.arguments, null, 2)}</pre>
        </details>
      )}
    </div>
  )
}

function flat(lines: Piece[][]): Piece[] {
  return lines.flatMap((line, index) => (index ? [{ text: '\n', kind: '' }, ...line] : line))
}
