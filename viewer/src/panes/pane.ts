/** What every pane beside the steps is given. */

import type { Episode } from '../types'

export interface PaneProps {
  episode: Episode
  position: number
  onStep: (position: number) => void
}

/** Where the step with this number stands among the steps that there are. */
export function positionOf(episode: Episode, index: number): number {
  const position = episode.steps.findIndex((step) => step.index === index)
  return Math.max(0, position)
}
