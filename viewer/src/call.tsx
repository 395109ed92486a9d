/** A tool call of a model, in steps and in messages. */

import { PythonCode } from './parts'
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
  const lists = given.filter(([, value]) => isList(value))
  const plain = given.filter((pair) => !long.includes(pair) && !lists.includes(pair))
  return (
    <div class="call">
      <code>
        <b>{call.name}</b>({plain.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(', ')}
        {long.length + lists.length > 0 ? (plain.length ? ', …' : '…') : ''})
      </code>
      {long.map(([name, value]) => (
        <div key={name} class="argument">
          <span>{name}</span>
          {name === 'code' ? <PythonCode text={String(value)} /> : <pre>{String(value)}</pre>}
        </div>
      ))}
      {lists.map(([name, value]) => (
        <div key={name} class="argument">
          <span>{name}</span>
          <ul>
            {(value as object[]).map((item, index) => (
              <li key={index}>
                <code>{itemText(call.name, item)}</code>
              </li>
            ))}
          </ul>
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

/** A call in one line; long texts and lists are left out. */
export function callText({ name, arguments: given }: { name: string; arguments: Record<string, unknown> }): string {
  const short = Object.entries(given).filter(([, value]) => typeof value !== 'object' && String(value).length <= 80)
  const more = short.length < Object.keys(given).length ? (short.length ? ', …' : '…') : ''
  return `${name}(${short.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(', ')}${more})`
}

/** Whether an argument is a list of objects, as the locations and the findings of a report are. */
function isList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'object' && item !== null)
}

/** The fields of an item. The model counts steps from 0 in its reports, the page from 1. */
function itemText(tool: string, item: object): string {
  return Object.entries(item)
    .map(([name, value]) => `${name} ${tool === 'report' && name === 'step' && typeof value === 'number' ? value + 1 : typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}
