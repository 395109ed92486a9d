/** The rows and what a query makes of them. */

import { useEffect, useMemo, useState } from 'preact/hooks'
import { backend } from '../backend'
import type { Query } from '../filters'
import { useLoaded } from '../hooks'
import { chosen, distributions, fieldsOf } from '../table'
import type { Distribution, Field, Row } from '../types'

export interface Table {
  /** All that meet the query, in its order; null until the first have come. */
  rows: Row[] | null
  distributions: Distribution[]
  fields: Field[]
  problem: string | null
}

export function useTable(query: Query, version: number): Table {
  const { rows, problem } = useRows(version)
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
  const fields = useMemo(() => fieldsOf(rows ?? []), [rows])
  return { rows: picked, distributions: spread, fields, problem: problem ?? search.problem }
}

function useRows(version: number): { rows: Row[] | null; problem: string | null } {
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
