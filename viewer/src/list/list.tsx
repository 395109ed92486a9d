/** The list: one row per episode, to sort, filter and search. */

import { useMemo } from 'preact/hooks'
import { go, type Address } from '../address'
import { readQuery, scopeOf, writeQuery, type Query } from '../filters'
import { useWide } from '../hooks'
import type { Overview } from '../types'
import { Bar } from './bar'
import { Distributions } from './distributions'
import { Rows } from './rows'
import { useTable } from './use_table'

export function List({ address, overview }: { address: Address; overview: Overview }) {
  const query = useMemo(() => readQuery(address.params), [address.params.toString()])
  const set = (next: Partial<Query>, replace = false) =>
    go({ view: 'list', keys: [], params: writeQuery({ ...query, ...next }) }, replace)
  const scope = scopeOf(query, overview.sources)
  const table = useTable(query, scope, overview.version)
  const wide = useWide('(min-width: 60rem)')
  return (
    <main class="list">
      <Bar query={query} set={set} fields={table.fields} loaded={table.loaded} searchable={overview.searchable} />
      <details class="spread" open={wide}>
        <summary>Distributions</summary>
        <Distributions query={query} spreads={table.distributions} onFilters={(filters) => set({ filters })} />
      </details>
      <Rows key={writeQuery({ ...query, columns: [] }).toString()} query={query} scope={scope} set={set} table={table} />
    </main>
  )
}
