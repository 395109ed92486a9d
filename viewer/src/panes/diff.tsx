/** The agent's edits up to a step. */

import { useMemo } from 'preact/hooks'
import { codeAt } from '../code'
import { Diff, Empty } from '../parts'
import { positionOf, type PaneProps } from './pane'

export function DiffPane({ episode, position, onStep }: PaneProps) {
  const state = useMemo(() => codeAt(episode.steps, position), [episode, position])
  const last = position >= episode.steps.length - 1
  return (
    <div class="diff-pane">
      {state.edits.length === 0 && <Empty>No changes up to this step.</Empty>}
      {state.edits.map((edit, index) => (
        <figure key={index} class={`diff ${edit.step === episode.steps[position]?.index ? 'newest' : ''}`}>
          <figcaption>
            <button class="plain" onClick={() => onStep(positionOf(episode, edit.step))}>
              Step {edit.step + 1}
            </button>{' '}
            {edit.path}
          </figcaption>
          <Diff text={edit.diff} />
        </figure>
      ))}
      {last && episode.patch && (
        <figure class="diff">
          <figcaption>Final patch</figcaption>
          <Diff text={episode.patch} />
        </figure>
      )}
    </div>
  )
}
