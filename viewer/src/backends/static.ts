/** Loads the data of a static copy. Each file is a script that calls `gumshoePut(name, data)`, as a page opened from a disk may load scripts only. */

import { cleaned } from '../clean'
import type { Episode, Evaluation, EvaluationTask, Mask, Overview, Row } from '../types'
import { Problem, type Backend } from './contract'

const arrived = new Map<string, unknown>()

declare global {
  interface Window {
    gumshoePut: (name: string, data: unknown) => void
  }
}

export class StaticBackend implements Backend {
  changes = false
  #loading = new Map<string, Promise<unknown>>()
  #found = new Map<string, Promise<Set<string>>>()

  constructor() {
    window.gumshoePut = (name, data) => arrived.set(name, data)
  }

  overview(): Promise<Overview> {
    return this.#load<Overview>('overview')
  }

  async rows(): Promise<{ rows: Row[]; whole: boolean }> {
    return { rows: await this.#load<Row[]>('rows'), whole: true }
  }

  search(text: string): Promise<Set<string>> {
    const terms = (text.toLowerCase().match(/"[^"]+"|\S+/g) ?? []).map((term) => term.replaceAll('"', ''))
    const key = terms.join('\n')
    const found = this.#found.get(key) ?? this.#search(terms)
    this.#found.set(key, found)
    return found
  }

  async episode(key: string): Promise<Episode> {
    return this.#load<Episode>(`episode-${await this.#number(key)}`)
  }

  async mask(key: string): Promise<Mask> {
    return this.#load<Mask>(`mask-${await this.#number(key)}`)
  }

  evaluation(slug: string): Promise<Evaluation> {
    return this.#load<Evaluation>(`evaluation-${slug}`)
  }

  async task(slug: string, task: string): Promise<EvaluationTask> {
    const number = (await this.evaluation(slug)).tasks.indexOf(task)
    if (number < 0) throw new Problem(`There is no task ${task} in this copy.`)
    return this.#load<EvaluationTask>(`task-${slug}-${number}`)
  }

  raw(): null {
    return null
  }

  async #number(key: string): Promise<number> {
    const number = (await this.#load<Row[]>('rows')).findIndex((row) => row.key === key)
    if (number < 0) throw new Problem(`There is no episode ${key} in this copy.`)
    return number
  }

  async #search(terms: string[]): Promise<Set<string>> {
    const { texts = 0 } = (await this.#load<Overview & { texts?: number }>('overview')) ?? {}
    const rows = await this.#load<Row[]>('rows')
    const found = new Set<string>()
    const patterns = terms.map(wordStart)
    for (let chunk = 0; chunk < texts; chunk++) {
      for (const [number, words] of await this.#load<[number, string][]>(`text-${chunk}`)) {
        const row = rows[number]
        if (row && patterns.every((pattern) => pattern.test(words))) found.add(row.key)
      }
    }
    return found
  }

  #load<T>(name: string): Promise<T> {
    let loading = this.#loading.get(name)
    if (!loading) {
      loading = this.#script(name)
      this.#loading.set(name, loading)
    }
    return loading as Promise<T>
  }

  #script(name: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const script = document.createElement('script')
      script.src = `data/${encodeURIComponent(name)}.js`
      script.onerror = () => reject(new Problem(`The file data/${name}.js is missing from this copy.`))
      script.onload = () => {
        const data = cleaned(arrived.get(name))
        arrived.delete(name)
        script.remove()
        const problem = (data as { error?: string } | undefined)?.error
        if (problem !== undefined) reject(new Problem(problem))
        else resolve(data)
      }
      document.head.append(script)
    })
  }
}

/** Matches a term at the beginning of a word, as the server's index does; the characters between words do not matter. */
function wordStart(term: string): RegExp {
  const words = term.match(/[\p{L}\p{N}]+/gu) ?? []
  return new RegExp(`(?<![\\p{L}\\p{N}])${words.join('[^\\p{L}\\p{N}]+')}`, 'u')
}
