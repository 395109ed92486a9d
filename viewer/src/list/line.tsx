/** One row, and the headings above all of them. */

import { format } from '../address'
import type { Query } from '../filters'
import { count, moment, money, seconds, short } from '../format'
import { Outcome, Strip, Tampered } from '../parts'
import type { Row } from '../types'

const COLUMNS: [string, string][] = [
  ['outcome', 'Outcome'],
  ['task', 'Task'],
  ['policy', 'Policy'],
  ['strip', 'Decisions'],
  ['steps', 'Steps'],
  ['tokens', 'Tokens'],
  ['cost', 'Cost'],
  ['seconds', 'Time'],
  ['created', 'Created'],
]

export function Head({ query, set }: { query: Query; set: (next: Partial<Query>) => void }) {
  const descending = query.sort.startsWith('-')
  const by = descending ? query.sort.slice(1) : query.sort
  return (
    <div class="head line">
      {COLUMNS.map(([name, title]) =>
        name === 'strip' ? (
          <span key={name} class={`c-${name}`}>
            {title}
          </span>
        ) : (
          <button
            key={name}
            class={`c-${name}`}
            aria-pressed={name === by}
            aria-label={`Sort by ${title.toLowerCase()}${name === by ? (descending ? ', descending' : ', ascending') : ''}`}
            onClick={() => set({ sort: name === by && descending ? name : `-${name}` })}
          >
            {title}
            <span aria-hidden="true">{name === by ? (descending ? ' ↓' : ' ↑') : ''}</span>
          </button>
        ),
      )}
    </div>
  )
}

interface LineProps {
  row: Row | undefined
  index: number
  height: number
  chosen: boolean
  search: string
}

export function RowLine({ row, index, height, chosen, search }: LineProps) {
  const style = { top: `${index * height}px`, height: `${height}px` }
  if (!row) return <li class="line pending" style={style} />
  return (
    <li style={style} class={chosen ? 'chosen' : ''}>
      <a class="line" href={format('episode', [row.key], { q: search })} data-index={index} tabIndex={chosen ? 0 : -1}>
        <span class="c-outcome">
          <Outcome outcome={row.outcome} />
        </span>
        <span class="c-task" title={`${row.task}\n${row.source}`}>
          {row.facts?.['tampered'] === 'yes' && <Tampered title="Filter by it: tampered:yes" />}
          {row.task || row.id}
        </span>
        <span class="c-policy" title={row.policy}>
          {row.policy || row.source}
        </span>
        <span class="c-strip">
          <Strip strip={row.strip} />
        </span>
        <span class="c-steps">{count(row.steps)}</span>
        <span class="c-tokens">{row.tokens ? short(row.tokens) : '–'}</span>
        <span class="c-cost">{money(row.cost)}</span>
        <span class="c-seconds">{seconds(row.seconds)}</span>
        <span class="c-created">{moment(row.created)}</span>
      </a>
    </li>
  )
}
