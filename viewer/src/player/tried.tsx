/** What else was tried at a step of a tree, what it was worth, and how it ended. */

import { callText } from '../call'
import { compareAddress, Decision, episodeAddress, Outcome } from '../parts'
import type { Episode, Tried } from '../types'

export function TriedHere({ episode, position }: { episode: Episode; position: number }) {
  const tried = triedAt(episode, position)
  if (!tried) return null
  return (
    <section class="tried" aria-label="Tried at this step">
      <h3>Tried at this step</h3>
      <table>
        <thead>
          <tr>
            <th>decision</th>
            <th title="Mean outcome of all episodes that went through it; advantage over the other decisions">value</th>
            <th title="Episodes that went through it">episodes</th>
            <th>ended</th>
            <th />
          </tr>
        </thead>
        <tbody>
          {tried.map((one, index) => (
            <Line key={index} one={one} episode={episode} position={position} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** The decisions that were tried at a step; null where there was only one. */
export function triedAt(episode: Episode, position: number): Tried[] | null {
  const step = episode.steps[position]
  return episode.tree.find((one) => one.step === step?.index)?.tried ?? null
}

function Line({ one, episode, position }: { one: Tried; episode: Episode; position: number }) {
  return (
    <tr class={one.mine ? 'mine' : ''}>
      <td>
        <Decision name={one.decision} /> <code>{one.calls.map(callText).join('; ') || 'no call'}</code>
      </td>
      <td class="figure">
        {one.value === null ? '–' : one.value.toFixed(2)}
        {one.advantage !== null && <small class={one.advantage < 0 ? 'bad' : 'good'}> {signed(one.advantage)}</small>}
      </td>
      <td class="figure">{one.count}</td>
      <td class="ended">
        <Outcome outcome={one.outcome} />
      </td>
      <td>
        {one.mine && <span class="note">this one</span>}
        {!one.mine && one.key !== null && (
          <>
            <a href={episodeAddress({ key: one.key }, position)}>open</a>{' '}
            <a href={compareAddress(episode.key, one.key, position)}>side by side</a>
          </>
        )}
      </td>
    </tr>
  )
}

function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(2)}`
}
