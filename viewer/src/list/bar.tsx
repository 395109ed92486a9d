/** The search field, the form that adds a condition, the conditions as chips, and what is wrong with them. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { describe, nearestField, OPERATORS, readTyped, same, typedName, unknownFields, type Filter, type Operator, type Query } from '../filters'
import { useKeys } from '../hooks'
import type { Field } from '../types'

interface Props {
  query: Query
  set: (next: Partial<Query>, replace?: boolean) => void
  fields: Field[]
  loaded: boolean
  searchable: boolean
}

export function Bar({ query, set, fields, loaded, searchable }: Props) {
  const [typed, setTyped] = useState(query.text)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => setTyped(query.text), [query.text])
  useEffect(() => {
    if (typed === query.text) return
    const timer = setTimeout(() => {
      if (!readTyped(typed, fields).filters.length) set({ text: typed.trim() }, true)
    }, 250)
    return () => clearTimeout(timer)
  }, [typed])
  useKeys((key) => {
    if (key !== '/') return false
    input.current?.focus()
    return true
  })
  const submit = (event: Event) => {
    event.preventDefault()
    const read = readTyped(typed, fields)
    setTyped(read.text)
    set({ text: read.text, filters: [...query.filters, ...read.filters] })
  }
  return (
    <div class="bar">
      <form role="search" onSubmit={submit}>
        <input
          ref={input}
          type="search"
          aria-label="Search messages and observations"
          placeholder="Search messages and observations, or steps>5 …  ( / )"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        />
      </form>
      <AddFilter fields={fields} onAdd={(filter) => set({ filters: [...query.filters, filter] })} />
      {(query.filters.length > 0 || query.text) && (
        <ul class="chips" aria-label="Filters">
          {query.filters.map((filter) => (
            <li key={describe(filter)}>
              <button
                onClick={() => set({ filters: query.filters.filter((one) => !same(one, filter)) })}
                title="Remove this filter"
              >
                {describe(filter)} <span aria-hidden="true">×</span>
              </button>
            </li>
          ))}
          <li>
            <button class="plain" onClick={() => set({ filters: [], text: '' })}>
              Clear all
            </button>
          </li>
        </ul>
      )}
      {loaded && unknownFields(query, fields).map((name) => <Unknown key={name} name={name} fields={fields} />)}
      {query.text && !searchable && <p class="note">Still indexing: more may be found in a moment.</p>}
    </div>
  )
}

/** A name that is no field, with those that are. */
function Unknown({ name, fields }: { name: string; fields: Field[] }) {
  const nearest = nearestField(name, fields)
  return (
    <p class="problem unknown" role="alert">
      There is no field <code>{name}</code>
      {nearest ? (
        <>
          : did you mean <code>{nearest}</code>?
        </>
      ) : (
        '.'
      )}{' '}
      In quotes, it is searched for as text. Fields:{' '}
      {fields.map((one, index) => (
        <span key={one.name}>
          {index > 0 && ', '}
          <code>{typedName(one.name)}</code>
        </span>
      ))}
      .
    </p>
  )
}

function AddFilter({ fields, onAdd }: { fields: Field[]; onAdd: (filter: Filter) => void }) {
  const [field, setField] = useState('outcome')
  const [op, setOp] = useState<Operator>('is')
  const [value, setValue] = useState('')
  const numeric = fields.find((one) => one.name === field)?.numeric
  const add = (event: Event) => {
    event.preventDefault()
    onAdd({ field, op, value: op === 'unknown' ? '' : value })
    setValue('')
  }
  return (
    <form class="add-filter" onSubmit={add}>
      <select aria-label="Field" value={field} onChange={(event) => setField(event.currentTarget.value)}>
        {fields.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <select aria-label="Comparison" value={op} onChange={(event) => setOp(event.currentTarget.value as Operator)}>
        {OPERATORS.map(([name, title]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
      {op !== 'unknown' && (
        <input
          aria-label="Value"
          value={value}
          inputMode={numeric ? 'decimal' : 'text'}
          onInput={(event) => setValue(event.currentTarget.value)}
          size={10}
        />
      )}
      <button>Filter</button>
    </form>
  )
}
