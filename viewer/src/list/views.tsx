/** Saved views: filters, search, order and columns under a name, kept in this browser. */

import { useState } from 'preact/hooks'
import { go } from '../address'
import { writeQuery, type Query } from '../filters'
import { keep, kept } from '../hooks'
import { Menu } from './menu'

interface View {
  name: string
  /** The parameters of the list's address. */
  params: string
}

const KEY = 'gumshoe-views'

export function ViewsMenu({ query }: { query: Query }) {
  const [views, setViews] = useState(savedViews)
  const [name, setName] = useState('')
  const [problem, setProblem] = useState(false)
  const params = writeQuery(query).toString()
  const store = (next: View[]) => {
    setViews(next)
    setProblem(!keep(KEY, JSON.stringify(next)))
  }
  const save = (event: Event) => {
    event.preventDefault()
    const wanted = name.trim()
    if (!wanted) return
    store([...views.filter((one) => one.name !== wanted), { name: wanted, params }])
    setName('')
  }
  return (
    <Menu title="Views">
      {views.length === 0 && <p class="note">No saved views. A view is the filters, the search, the order and the columns.</p>}
      <ul class="views" aria-label="Saved views">
        {views.map((one) => (
          <li key={one.name}>
            <button class="plain" aria-current={one.params === params ? 'true' : undefined} onClick={() => go(`#/list?${one.params}`)}>
              {one.name}
            </button>
            <button class="plain" aria-label={`Delete ${one.name}`} onClick={() => store(views.filter((other) => other !== one))}>
              ×
            </button>
          </li>
        ))}
      </ul>
      <form onSubmit={save}>
        <input aria-label="Name of the view" placeholder="Name" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        <button>Save this view</button>
      </form>
      {problem && <p class="note">This browser does not keep data of this page: views last until it is closed.</p>}
    </Menu>
  )
}

function savedViews(): View[] {
  try {
    const found: unknown = JSON.parse(kept(KEY) ?? '[]')
    return Array.isArray(found) ? found.filter((one) => typeof one?.name === 'string' && typeof one?.params === 'string') : []
  } catch {
    return []
  }
}
