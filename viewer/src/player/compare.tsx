/** Two episodes side by side, aligned by step. */

import { go, type Address } from '../address'
import { backend } from '../backend'
import { count, percent } from '../format'
import { useKeys, useLoaded } from '../hooks'
import { Empty, episodeAddress, Outcome, Wait } from '../parts'
import type { Episode, Row } from '../types'
import { policyOf } from './heading'
import { keyedPosition, usePosition } from './position'
import { Mover, Rail } from './rail'
import { StepCard } from './step'

export function Compare({ address }: { address: Address }) {
  const [left = '', right = ''] = address.keys
  const first = useLoaded(() => backend.episode(left), [left], left)
  const second = useLoaded(() => backend.episode(right), [right], right)
  const steps = Math.max(first.data?.steps.length ?? 0, second.data?.steps.length ?? 0)
  const [position, setPosition] = usePosition(address, steps)
  useKeys((pressed) => {
    const next = keyedPosition(pressed, steps)
    if (next !== null) setPosition(next)
    else if (pressed === 'Escape') go(episodeAddress({ key: left }, position))
    else return false
    return true
  })
  return (
    <main class="compare">
      <header class="heading">
        <h1>{first.data?.task.id ?? ''}</h1>
        {first.data && second.data && first.data.task.id !== second.data.task.id && (
          <p class="problem">These episodes belong to different tasks. The second one is {second.data.task.id}.</p>
        )}
      </header>
      <Mover position={position} steps={steps} index={position} onStep={setPosition} />
      <div class="pair">
        {[first, second].map(({ data, problem }, side) => (
          <section key={side} aria-label={side === 0 ? 'First episode' : 'Second episode'}>
            {data ? <Side episode={data} position={position} onStep={setPosition} /> : <Wait problem={problem} />}
          </section>
        ))}
      </div>
    </main>
  )
}

function Side({ episode, position, onStep }: { episode: Episode; position: number; onStep: (position: number) => void }) {
  const row: Partial<Row> = episode.row ?? {}
  return (
    <>
      <p class="side-head">
        <Outcome outcome={row.outcome ?? episode.stop} />
        <a href={episodeAddress(episode, position)}>{policyOf(episode) || episode.id}</a>
        <span class="note">
          {row.source}, {count(episode.steps.length)} steps
          {episode.steps[position]?.confidence != null ? `, confidence ${percent(episode.steps[position]?.confidence)}` : ''}
        </span>
      </p>
      <Rail steps={episode.steps} position={position} onStep={onStep} />
      {position < episode.steps.length ? (
        <StepCard episode={episode} position={position} />
      ) : (
        <Empty>It ended after step {(episode.steps.at(-1)?.index ?? 0) + 1}: {episode.stop.replaceAll('_', ' ')}.</Empty>
      )}
    </>
  )
}
