/** The list: every episode as a row, to be sorted, filtered and searched. */

import { useMemo } from 'preact/hooks'
import { go, type Address } from '../address'
import { readQuery, writeQuery, type Query } from '../filters'
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
  const table = useTable(query, overview.version)
  const wide = useWide('(min-width: 60rem)')
  return (
    <main class="list">
      <Bar query={query} set={set} fields={table.fields} searchable={overview.searchable} />
      <details class="spread" open={wide}>
        <summary>Distributions</summary>
        <Distributions query={query} spreads={table.distributions} onFilters={(filters) => set({ filters })} />
      </details>
      <Rows key={address.params.toString()} query={query} set={set} rows={table.rows} problem={table.problem} />
    </main>
  )
}
