/** The player: one episode step by step, with side panels. */

import { useEffect, useRef } from 'preact/hooks'
import { changed, go, lastList, parse, type Address } from '../address'
import { backend } from '../backend'
import { useKeys, useLoaded, useWide } from '../hooks'
import { CodePane } from '../panes/code'
import { DiffPane } from '../panes/diff'
import { FactsPane } from '../panes/facts'
import { MaskPane } from '../panes/mask'
import { MessagesPane } from '../panes/messages'
import { PackPane } from '../panes/pack'
import { Empty, episodeAddress, Tabs, Wait } from '../parts'
import type { Episode, Overview } from '../types'
import { Heading } from './heading'
import { keyedPosition, usePosition } from './position'
import { Mover, Rail, RailKey } from './rail'
import { StepCard } from './step'

export function Player({ address, overview }: { address: Address; overview: Overview }) {
  const key = address.keys[0] ?? ''
  const live = useRef(false)
  const { data: episode, problem } = useLoaded(() => backend.episode(key), [key, live.current ? overview.version : 0], key)
  live.current = episode?.live ?? false
  if (!episode) return <Wait problem={problem} />
  return <Playing episode={episode} address={address} overview={overview} />
}

function Playing({ episode, address, overview }: { episode: Episode; address: Address; overview: Overview }) {
  const [position, setPosition] = usePosition(address, episode.steps.length)
  const tabs = tabsFor(episode)
  const asked = address.params.get('tab')
  const tab = tabs.some(([name]) => name === asked) ? (asked ?? '') : (tabs[0]?.[0] ?? '')
  const setTab = (name: string) => go(changed(parse(location.hash), { tab: name }), true)
  useKeys((pressed) => {
    const next = keyedPosition(pressed, episode.steps.length)
    const number = Number(pressed)
    if (next !== null) setPosition(next)
    else if (number >= 1 && number <= tabs.length) setTab(tabs[number - 1]?.[0] ?? '')
    else if (pressed === '[' || pressed === ']') sideways(episode, pressed === ']' ? 1 : -1)
    else if (pressed === 'c') toggleOthers()
    else if (pressed === 'Escape') go(lastList())
    else return false
    return true
  })
  useEffect(() => {
    document.title = `${episode.task.id} · Gumshoe`
  }, [episode])
  const wide = useWide('(min-width: 60rem)')
  const beside = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // In one column, a link to a side panel scrolls to it.
    if (asked && !wide) beside.current?.scrollIntoView()
  }, [episode.key])
  const pane = { episode, position, onStep: setPosition }
  return (
    <main class="player">
      <Heading episode={episode} position={position} />
      <Rail steps={episode.steps} position={position} onStep={setPosition} others={new Map(episode.tree.map((one) => [one.step, one.tried.length - 1]))} />
      {episode.steps.length === 0 && <Empty>This episode has no steps.</Empty>}
      <div class="columns">
        <div class="turn">
          <Mover position={position} steps={episode.steps.length} onStep={setPosition} index={episode.steps[position]?.index ?? 0}>
            <RailKey steps={episode.steps} />
          </Mover>
          {episode.steps.length > 0 && <StepCard episode={episode} position={position} search={address.params.get('q') ?? ''} />}
        </div>
        <div class="beside" ref={beside}>
          <Tabs tabs={tabs} chosen={tab} onChoose={setTab} />
          <div role="tabpanel" class="pane" aria-label={tab}>
            {tab === 'code' && <CodePane {...pane} />}
            {tab === 'diff' && <DiffPane {...pane} />}
            {tab === 'pack' && <PackPane {...pane} />}
            {tab === 'messages' && <MessagesPane {...pane} />}
            {tab === 'mask' && <MaskPane episode={episode} position={position} masks={overview.masks} />}
            {tab === 'facts' && <FactsPane episode={episode} />}
          </div>
        </div>
      </div>
    </main>
  )
}

function tabsFor(episode: Episode): [string, string][] {
  return [
    ['code', 'Code'],
    ['diff', 'Diff'],
    ['pack', 'Pack'],
    ['messages', 'Messages'],
    ...(episode.kind === 'dataset' ? [['mask', 'Mask'] as [string, string]] : []),
    ['facts', 'Facts'],
  ]
}

/** Opens or closes the list of the task's other episodes, and moves the keyboard focus into it. */
function toggleOthers(): void {
  const box = document.querySelector<HTMLDetailsElement>('.others')
  const summary = box?.querySelector('summary')
  summary?.click()
  if (box?.open) box.querySelector('a')?.focus()
  else summary?.focus()
}

function sideways(episode: Episode, by: number): void {
  const rows = episode.siblings.filter((row) => row.kind === episode.kind)
  const next = rows[rows.findIndex((row) => row.key === episode.key) + by]
  if (next) go(episodeAddress(next))
}
