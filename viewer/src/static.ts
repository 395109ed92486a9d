/** The data of a copy: each file is a script that calls `gumshoePut(name, data)`, as a page on a disk can load no data. */

import type { Backend } from './backend'
import { cleaned } from './clean'
import { meets, valueOf, type Query } from './filters'
import type { Distribution, Episode, Evaluation, Mask, Numbers, Overview, Page, Row, Value } from './types'

const PLOTTED = ['outcome', 'policy', 'project', 'source', 'view', 'split', 'agent', 'stop']
const PLOTTED_NUMBERS = ['steps', 'tokens', 'seconds', 'cost', 'confidence', 'failed calls']
/** In the order of the page, the most telling ones first. */
const ORDER = [...PLOTTED.slice(0, 1), ...PLOTTED_NUMBERS.slice(0, 4), ...PLOTTED.slice(1), ...PLOTTED_NUMBERS.slice(4)]
const BINS = 24
const MOST_VALUES = 12

const arrived = new Map<string, unknown>()

declare global {
  interface Window {
    gumshoePut: (name: string, data: unknown) => void
  }
}

export class StaticBackend implements Backend {
  changes = false
  #loading = new Map<string, Promise<unknown>>()
  #found = new Map<string, Promise<Set<number>>>()

  constructor() {
    window.gumshoePut = (name, data) => arrived.set(name, data)
  }

  overview(): Promise<Overview> {
    return this.#load<Overview>('overview')
  }

  async page(query: Query, offset: number, limit: number): Promise<Page> {
    const rows = sorted(await this.#chosen(query), query.sort)
    return { total: rows.length, offset, rows: rows.slice(offset, offset + limit) }
  }

  async distributions(query: Query): Promise<Distribution[]> {
    const all = await this.#load<Row[]>('rows')
    const matching = await this.#matching(query.text)
    const chosenFor = (name: string) => all.filter((row, n) => matching(n) && meets(row, query.filters, name))
    const every = [
      ...PLOTTED.map((name) => valuesOf(name, all, chosenFor(name))),
      ...PLOTTED_NUMBERS.map((name) => histogram(name, all, chosenFor(name))),
    ]
    return ORDER.flatMap((name) => every.filter((one) => one?.name === name)).filter((one) => one !== null)
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

  raw(): null {
    return null
  }

  async #number(key: string): Promise<number> {
    const number = (await this.#load<Row[]>('rows')).findIndex((row) => row.key === key)
    if (number < 0) throw new Error(`There is no episode ${key} in this copy.`)
    return number
  }

  async #chosen(query: Query): Promise<Row[]> {
    const rows = await this.#load<Row[]>('rows')
    const matching = await this.#matching(query.text)
    return rows.filter((row, number) => matching(number) && meets(row, query.filters))
  }

  async #matching(text: string): Promise<(number: number) => boolean> {
    const terms = (text.toLowerCase().match(/"[^"]+"|\S+/g) ?? []).map((term) => term.replaceAll('"', ''))
    if (!terms.length) return () => true
    const key = terms.join('\n')
    if (!this.#found.has(key)) this.#found.set(key, this.#search(terms))
    const found = await this.#found.get(key)
    return (number) => found?.has(number) ?? false
  }

  async #search(terms: string[]): Promise<Set<number>> {
    const { texts = 0 } = (await this.#load<Overview & { texts?: number }>('overview')) ?? {}
    const found = new Set<number>()
    const patterns = terms.map(wordStart)
    for (let chunk = 0; chunk < texts; chunk++) {
      for (const [number, words] of await this.#load<[number, string][]>(`text-${chunk}`)) {
        if (patterns.every((pattern) => pattern.test(words))) found.add(number)
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
      script.onerror = () => reject(new Error(`The file data/${name}.js is missing from this copy.`))
      script.onload = () => {
        const data = cleaned(arrived.get(name))
        arrived.delete(name)
        script.remove()
        const problem = (data as { error?: string } | undefined)?.error
        if (problem !== undefined) reject(new Error(problem))
        else resolve(data)
      }
      document.head.append(script)
    })
  }
}

/** Finds a term where a word begins, as the server's index does: what is between words makes no difference. */
function wordStart(term: string): RegExp {
  const words = term.match(/[\p{L}\p{N}]+/gu) ?? []
  return new RegExp(`(?<![\\p{L}\\p{N}])${words.join('[^\\p{L}\\p{N}]+')}`, 'u')
}

function sorted(rows: Row[], sort: string): Row[] {
  const descending = sort.startsWith('-')
  const name = descending ? sort.slice(1) : sort
  const sign = descending ? -1 : 1
  const known = rows.map((row, number) => ({ row, number, value: valueOf(row, name) }))
  known.sort((a, b) => {
    if ((a.value === null) !== (b.value === null)) return a.value === null ? 1 : -1
    return sign * (order(a.value, b.value) || a.number - b.number)
  })
  return known.map(({ row }) => row)
}

function order(a: Value, b: Value): number {
  if (a === null || b === null || a === b) return 0
  return a < b ? -1 : 1
}

function valuesOf(name: string, all: Row[], chosen: Row[]): Distribution | null {
  const every = counted(all, name)
  if ([...every.keys()].filter((value) => value !== '').length < 2) return null
  const some = counted(chosen, name)
  const ranked = [...every].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
  const shown = ranked.slice(0, MOST_VALUES)
  return {
    name,
    kind: 'values',
    values: shown.map(([value, count]) => ({ value, count: some.get(value) ?? 0, all: count })),
    rest: ranked.length - shown.length,
  }
}

function counted(rows: Row[], name: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const row of rows) {
    const value = String(valueOf(row, name) ?? '')
    counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return counts
}

function histogram(name: string, all: Row[], chosen: Row[]): Numbers | null {
  const numbers = (rows: Row[]) => rows.map((row) => valueOf(row, name)).filter((value) => typeof value === 'number')
  const every = numbers(all)
  let [low, high, whole] = [Infinity, -Infinity, true]
  for (const value of every) {
    low = Math.min(low, value)
    high = Math.max(high, value)
    whole &&= Number.isInteger(value)
  }
  if (!(low < high)) return null
  const width = whole ? Math.max(1, Math.ceil(Math.trunc(high - low + 1) / BINS)) : (high - low) / BINS
  const bins = Math.min(BINS, Math.max(1, Math.trunc((high - low) / width) + (whole ? 1 : 0)))
  const counts = (values: number[]) => {
    const found = new Array<number>(bins).fill(0)
    for (const value of values) {
      const bin = Math.min(bins - 1, Math.trunc((value - low) / width))
      found[bin] = (found[bin] ?? 0) + 1
    }
    return found
  }
  return { name, kind: 'numbers', low, width, whole, counts: counts(numbers(chosen)), all: counts(every) }
}
