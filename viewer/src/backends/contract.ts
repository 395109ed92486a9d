/** Where the data come from, as the views see it. */

import type { Episode, Evaluation, EvaluationTask, Mask, Overview, Row } from '../types'

export interface Backend {
  /** Whether anything may change while one looks. */
  changes: boolean
  overview(): Promise<Overview>
  /** All rows that there are now; `whole` is false while more of them are on their way. */
  rows(): Promise<{ rows: Row[]; whole: boolean }>
  /** The keys of the episodes that hold the words of a text. */
  search(text: string): Promise<Set<string>>
  episode(key: string): Promise<Episode>
  mask(key: string): Promise<Mask>
  evaluation(slug: string): Promise<Evaluation>
  task(slug: string, task: string): Promise<EvaluationTask>
  /** Where the stored JSON can be had; null where it cannot. */
  raw(key: string): string | null
}

export class Problem extends Error {}
