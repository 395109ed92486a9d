/** The application: the top bar, and which view is shown. */

import { render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useAddress } from './address'
import { backend } from './backend'
import { EvaluationView } from './evaluation/evaluation'
import { keep, kept, useKeys } from './hooks'
import { List } from './list/list'
import { Sources } from './list/sources'
import { Landing } from './overview/overview'
import { Wait } from './parts'
import { Compare } from './player/compare'
import { Player } from './player/player'
import type { Overview } from './types'

const KEYS: [string, string][] = [
  ['/', 'search'],
  ['↑ ↓ or k j', 'previous row, next row'],
  ['Page Up/Down, Home, End', 'page through the list'],
  ['Enter', 'open the row'],
  ['← → or h l', 'previous step, next step'],
  ['Home, End', 'first step, last step'],
  ['1 to 6', 'side panel'],
  ['c', 'other episodes of the task'],
  ['[ ]', 'previous, next episode of the task'],
  ['Escape', 'back'],
  ['t', 'light or dark'],
  ['?', 'these keys'],
]

function useOverview(): { overview: Overview | null; problem: string | null } {
  const [overview, setOverview] = useState<Overview | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    let timer = 0
    let ended = false
    const ask = async () => {
      try {
        const found = await backend.overview()
        if (ended) return
        setOverview((before) => (before && JSON.stringify(before) === JSON.stringify(found) ? before : found))
        setProblem(null)
        if (!backend.changes) return
        const busy = !found.searchable || found.sources.some((source) => source.live || source.indexed < 1)
        timer = window.setTimeout(ask, document.hidden ? 5000 : busy ? 700 : 2000)
      } catch (error) {
        if (ended) return
        setProblem(error instanceof Error ? error.message : String(error))
        if (backend.changes) timer = window.setTimeout(ask, 3000)
      }
    }
    void ask()
    return () => {
      ended = true
      clearTimeout(timer)
    }
  }, [])
  return { overview, problem }
}

function App() {
  const address = useAddress()
  const { overview, problem } = useOverview()
  const help = useRef<HTMLDialogElement>(null)
  const [theme, flip] = useTheme()
  useKeys((key) => {
    if (key === '?') help.current?.showModal()
    else if (key === 't') flip()
    else return false
    return true
  })
  useEffect(() => {
    if (address.view === 'list' || address.view === 'overview') document.title = 'Gumshoe'
  }, [address.view])
  return (
    <>
      <header class="top">
        <a class="brand" href="#/">
          Gumshoe
        </a>
        {overview && <Sources address={address} overview={overview} />}
        <span class="tools">
          <button class="plain" onClick={flip} aria-label={theme === 'dark' ? 'Light' : 'Dark'} title="Light or dark (t)">
            ◐
          </button>
          <button class="plain" onClick={() => help.current?.showModal()} aria-label="Keys" title="Keys (?)">
            ?
          </button>
        </span>
      </header>
      {problem && <Wait problem={problem} />}
      {!overview && !problem && <Wait />}
      {overview && address.view === 'overview' && <Landing overview={overview} />}
      {overview && address.view === 'list' && <List address={address} overview={overview} />}
      {overview && address.view === 'episode' && <Player address={address} overview={overview} />}
      {overview && address.view === 'compare' && <Compare address={address} />}
      {overview && address.view === 'evaluation' && <EvaluationView address={address} overview={overview} />}
      {overview && !['overview', 'list', 'episode', 'compare', 'evaluation'].includes(address.view) && (
        <p class="empty">
          There is no such page. <a href="#/">Overview</a>
        </p>
      )}
      <dialog ref={help} aria-label="Keys">
        <h2>Keys</h2>
        <dl class="facts">
          {KEYS.map(([key, meaning]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
        <button onClick={() => help.current?.close()}>Close</button>
      </dialog>
    </>
  )
}

/** Light or dark: the system's setting until the button is used. */
function useTheme(): [string, () => void] {
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
  const [theme, setTheme] = useState(() => kept('gumshoe-theme') ?? system)
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme
  }, [theme])
  const flip = () => {
    const next = theme === 'dark' ? 'light' : 'dark'
    setTheme(next)
    keep('gumshoe-theme', next)
  }
  return [theme, flip]
}

const root = document.getElementById('app')
if (root) {
  root.textContent = ''
  render(<App />, root)
}
