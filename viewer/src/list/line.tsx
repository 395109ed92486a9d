/** One row of the list, and the headings of the columns. */

import { format } from '../address'
import type { Query } from '../filters'
import type { Row } from '../types'
import { fieldText, USUAL_COLUMNS, type Column } from './columns'

interface HeadProps {
  columns: Column[]
  query: Query
  set: (next: Partial<Query>) => void
}

export function Head({ columns, query, set }: HeadProps) {
  const descending = query.sort.startsWith('-')
  const by = descending ? query.sort.slice(1) : query.sort
  return (
    <div class="head line">
      {columns.map(({ name, title }) =>
        name === 'strip' ? (
          <span key={name} class={classOf(name)}>
            {title}
          </span>
        ) : (
          <button
            key={name}
            class={classOf(name)}
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
  columns: Column[]
  index: number
  height: number
  chosen: boolean
  search: string
}

export function RowLine({ row, columns, index, height, chosen, search }: LineProps) {
  const style = { top: `${index * height}px`, height: `${height}px` }
  if (!row) return <li class="line pending" style={style} />
  const more = columns.filter(({ name }) => !USUAL_COLUMNS.includes(name))
  return (
    <li style={style} class={chosen ? 'chosen' : ''}>
      <a class="line" href={format('episode', [row.key], { q: search })} data-index={index} tabIndex={chosen ? 0 : -1}>
        {columns.map(({ name, cell }) => (
          <span key={name} class={classOf(name)} title={tooltip(row, name)}>
            {cell(row)}
          </span>
        ))}
        {more.length > 0 && <span class="c-more">{more.map(({ name }) => `${name} ${fieldText(row, name)}`).join(' · ')}</span>}
      </a>
    </li>
  )
}

function classOf(name: string): string {
  return USUAL_COLUMNS.includes(name) ? `c-${name}` : 'c-field'
}

function tooltip(row: Row, name: string): string | undefined {
  if (name === 'outcome' || name === 'strip') return undefined
  return name === 'task' ? `${row.task}\n${row.source}` : name === 'policy' ? row.policy : USUAL_COLUMNS.includes(name) ? undefined : fieldText(row, name)
}
