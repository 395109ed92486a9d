/** Loads the data from the server that sent this page. */

import { cleaned } from '../clean'
import type { Episode, Evaluation, EvaluationTask, Mask, Overview, Row } from '../types'
import { Problem, type Backend } from './contract'

interface RowsAnswer {
  era: string
  first: boolean
  last: number
  more: boolean
  rows: Row[]
  live: Row[]
}

export class ServerBackend implements Backend {
  changes = true
  #era = ''
  #last = 0
  #rows: Row[] = []
  #asking: Promise<{ rows: Row[]; whole: boolean }> | null = null

  overview(): Promise<Overview> {
    return this.#ask('overview')
  }

  rows(): Promise<{ rows: Row[]; whole: boolean }> {
    this.#asking ??= this.#next().finally(() => (this.#asking = null))
    return this.#asking
  }

  async search(text: string): Promise<Set<string>> {
    return new Set((await this.#ask<{ keys: string[] }>('search', { q: text })).keys)
  }

  episode(key: string): Promise<Episode> {
    return this.#ask(`episode/${encodeURIComponent(key)}`)
  }

  mask(key: string): Promise<Mask> {
    return this.#ask(`mask/${encodeURIComponent(key)}`)
  }

  evaluation(slug: string): Promise<Evaluation> {
    return this.#ask(`evaluation/${encodeURIComponent(slug)}`)
  }

  task(slug: string, task: string): Promise<EvaluationTask> {
    return this.#ask(`task/${encodeURIComponent(slug)}/${task.split('/').map(encodeURIComponent).join('/')}`)
  }

  raw(key: string): string {
    return `api/raw/${encodeURIComponent(key)}`
  }

  /** Asks for the rows that are not loaded yet; those of episodes in progress are sent each time. */
  async #next(): Promise<{ rows: Row[]; whole: boolean }> {
    const answer = await this.#ask<RowsAnswer>('rows', { era: this.#era, last: String(this.#last) })
    if (answer.first) this.#rows = []
    for (const row of answer.rows) this.#rows.push(row)
    this.#era = answer.era
    this.#last = answer.last
    return { rows: [...this.#rows, ...answer.live], whole: !answer.more }
  }

  async #ask<T>(path: string, params: Record<string, string> = {}): Promise<T> {
    const query = new URLSearchParams(params).toString()
    let answer: Response
    try {
      answer = await fetch(`api/${path}${query ? `?${query}` : ''}`)
    } catch {
      throw new Problem('The server does not answer: is gumshoe view still running?')
    }
    if (answer.status === 401) throw new Problem('Open the address that gumshoe view printed: it carries a token.')
    const data: unknown = await answer.json()
    if (!answer.ok) throw new Problem(cleaned((data as { error: string }).error))
    return cleaned(data as T)
  }
}
