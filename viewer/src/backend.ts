/** Where the data come from: the server that this page came from, or the files beside it. */

import { cleaned } from './clean'
import type { Query } from './filters'
import { StaticBackend } from './static'
import type { Distribution, Episode, Evaluation, Mask, Overview, Page } from './types'

export interface Backend {
  /** Whether anything may change while one looks. */
  changes: boolean
  overview(): Promise<Overview>
  page(query: Query, offset: number, limit: number): Promise<Page>
  distributions(query: Query): Promise<Distribution[]>
  episode(key: string): Promise<Episode>
  mask(key: string): Promise<Mask>
  evaluation(slug: string): Promise<Evaluation>
  /** Where the stored JSON can be had; null where it cannot. */
  raw(key: string): string | null
}

export class Problem extends Error {}

class ServerBackend implements Backend {
  changes = true

  overview(): Promise<Overview> {
    return this.#ask('overview')
  }

  page(query: Query, offset: number, limit: number): Promise<Page> {
    return this.#ask('episodes', { ...asked(query), offset: String(offset), limit: String(limit) })
  }

  async distributions(query: Query): Promise<Distribution[]> {
    return (await this.#ask<{ fields: Distribution[] }>('distributions', asked(query))).fields
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

  raw(key: string): string {
    return `api/raw/${encodeURIComponent(key)}`
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

function asked(query: Query): Record<string, string> {
  return { filters: JSON.stringify(query.filters), q: query.text, sort: query.sort }
}

export const backend: Backend =
  document.documentElement.dataset['static'] === '1' ? new StaticBackend() : new ServerBackend()
