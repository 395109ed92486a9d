/** The properties of every side panel. */

import type { Episode } from '../types'

export interface PaneProps {
  episode: Episode
  position: number
  onStep: (position: number) => void
}

/** The position of the step with this index. */
export function positionOf(episode: Episode, index: number): number {
  const position = episode.steps.findIndex((step) => step.index === index)
  return Math.max(0, position)
}
