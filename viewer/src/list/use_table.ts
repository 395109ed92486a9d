/** The rows, and the rows that match a query. */

import { useEffect, useMemo, useState } from 'preact/hooks'
import { backend } from '../backend'
import type { Query, Scope } from '../filters'
import { useLoaded } from '../hooks'
import { chosen, distributions, fieldsOf, inScope } from '../table'
import type { Distribution, Field, Row } from '../types'

export interface Table {
  /** All that match the query, in its order; null until the first have arrived. */
  rows: Row[] | null
  /** How many rows match in the other scope. */
  elsewhere: number
  distributions: Distribution[]
  fields: Field[]
  /** Whether any rows have arrived, so that their fields are known. */
  loaded: boolean
  problem: string | null
}

export function useTable(query: Query, scope: Scope, version: number): Table {
  const { rows: all, problem } = useRows(version)
  const rows = useMemo(() => (all ? inScope(all, scope) : null), [all, scope])
  const search = useLoaded(
    () => (query.text ? backend.search(query.text) : Promise.resolve(null)),
    [query.text, version],
    query.text,
  )
  const waiting = query.text !== '' && search.data === null && search.problem === null
  const found = search.data
  const key = JSON.stringify(query)
  const picked = useMemo(() => (rows && !waiting ? chosen(rows, query, found) : null), [rows, key, found, waiting])
  const spread = useMemo(() => (rows && !waiting ? distributions(rows, query, found) : []), [rows, key, found, waiting])
  const elsewhere = useMemo(() => {
    const other = all && !waiting ? inScope(all, scope === 'rows' ? 'episodes' : 'rows') : []
    return chosen(other, query, found).length
  }, [all, scope, key, found, waiting])
  const fields = useMemo(() => fieldsOf(all ?? []), [all])
  return { rows: picked, elsewhere, distributions: spread, fields, loaded: all !== null, problem: problem ?? search.problem }
}

/** All rows of all sources, as far as they have arrived. */
export function useRows(version: number): { rows: Row[] | null; problem: string | null } {
  const [rows, setRows] = useState<Row[] | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    let ended = false
    const ask = async () => {
      try {
        for (let whole = false; !whole && !ended; ) {
          const answer = await backend.rows()
          if (ended) return
          whole = answer.whole
          setRows(answer.rows)
          setProblem(null)
        }
      } catch (error) {
        if (!ended) setProblem(error instanceof Error ? error.message : String(error))
      }
    }
    void ask()
    return () => {
      ended = true
    }
  }, [version])
  return { rows, problem }
}
