/** The interface of a backend, which loads the data of the views. */

import type { Episode, Evaluation, EvaluationTask, Mask, Overview, Row } from '../types'

export interface Backend {
  /** Whether the data may change while the page is open. */
  changes: boolean
  overview(): Promise<Overview>
  /** All rows that are loaded so far; `whole` is false while there are more. */
  rows(): Promise<{ rows: Row[]; whole: boolean }>
  /** The keys of the episodes that contain the words of a text. */
  search(text: string): Promise<Set<string>>
  episode(key: string): Promise<Episode>
  mask(key: string): Promise<Mask>
  evaluation(slug: string): Promise<Evaluation>
  task(slug: string, task: string): Promise<EvaluationTask>
  /** The address of the stored JSON; null where there is none. */
  raw(key: string): string | null
}

export class Problem extends Error {}
