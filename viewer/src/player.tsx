/** The player: one episode step by step, or two of them side by side. */

import { useEffect, useRef } from 'preact/hooks'
import { changed, format, go, lastList, parse, type Address } from './address'
import { backend } from './backend'
import { count, money, percent, seconds, short } from './format'
import { Empty, episodeAddress, Outcome, Strip, Tabs, useKeys, useLoaded, Wait } from './parts'
import { CodePane, DiffPane, FactsPane, MaskPane, MessagesPane, PackPane } from './panes'
import { StepCard } from './step'
import type { Episode, Overview, Row, Step } from './types'

function usePosition(address: Address, steps: number): [number, (position: number) => void] {
  return [
    positionIn(address, steps),
    (next) => go(changed(parse(location.hash), { step: Math.min(Math.max(0, next), Math.max(0, steps - 1)) }), true),
  ]
}

function positionIn(address: Address, steps: number): number {
  const asked = Number(address.params.get('step') ?? 0)
  return Math.min(Math.max(0, Number.isInteger(asked) ? asked : 0), Math.max(0, steps - 1))
}

/** Where a key leads among the steps; counted from the address, which is ahead of the screen while keys come quickly. */
function keyedPosition(key: string, steps: number): number | null {
  const now = positionIn(parse(location.hash), steps)
  if (['ArrowRight', 'l', 'j'].includes(key)) return now + 1
  if (['ArrowLeft', 'h', 'k'].includes(key)) return now - 1
  if (key === 'Home') return 0
  return key === 'End' ? steps - 1 : null
}

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
    else if (pressed === 'c') document.querySelector<HTMLElement>('.others summary')?.click()
    else if (pressed === 'Escape') go(lastList())
    else return false
    return true
  })
  useEffect(() => {
    document.title = `${episode.task.id} · Gumshoe`
  }, [episode])
  const pane = { episode, position, onStep: setPosition }
  return (
    <main class="player">
      <Heading episode={episode} position={position} />
      <Rail steps={episode.steps} position={position} onStep={setPosition} />
      {episode.steps.length === 0 && <Empty>This episode has no steps.</Empty>}
      <div class="columns">
        <div class="turn">
          <Mover position={position} steps={episode.steps.length} onStep={setPosition} index={episode.steps[position]?.index ?? 0} />
          {episode.steps.length > 0 && <StepCard episode={episode} position={position} search={address.params.get('q') ?? ''} />}
        </div>
        <div class="beside">
          <Tabs tabs={tabs} chosen={tab} onChoose={setTab} />
          <div role="tabpanel" class="pane" aria-label={tab}>
            {tab === 'code' && <CodePane {...pane} />}
            {tab === 'diff' && <DiffPane {...pane} />}
            {tab === 'pack' && <PackPane {...pane} />}
            {tab === 'messages' && <MessagesPane {...pane} />}
            {tab === 'mask' && <MaskPane episode={episode} masks={overview.masks} />}
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

function sideways(episode: Episode, by: number): void {
  const place = episode.siblings.findIndex((row) => row.key === episode.key)
  const next = episode.siblings[place + by]
  if (next) go(episodeAddress(next))
}

function Heading({ episode, position }: { episode: Episode; position: number }) {
  const { row, usage } = episode
  const tokens = (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0)
  return (
    <header class="heading">
      <h1>{episode.task.id || episode.id}</h1>
      <p>
        <Outcome outcome={row?.outcome ?? episode.stop.replaceAll('_', ' ')} />
        <span>{[episode.policy.kind, episode.policy.model].filter(Boolean).join(' ') || 'in flight'}</span>
        <span>{count(episode.steps.length)} steps</span>
        {tokens > 0 && <span>{short(tokens)} tokens</span>}
        {row?.seconds != null && <span>{seconds(row.seconds)}</span>}
        {usage.cost_usd != null && <span>{money(usage.cost_usd)}</span>}
        {episode.live && <span class="running">in progress</span>}
        {episode.cut > 0 && <span class="note">{count(episode.cut)} long texts are cut here</span>}
      </p>
      <Others episode={episode} position={position} />
    </header>
  )
}

function Others({ episode, position }: { episode: Episode; position: number }) {
  const others = episode.siblings.filter((row) => row.key !== episode.key)
  if (!others.length) return null
  return (
    <details class="others">
      <summary>
        {count(others.length)} more of this task <kbd>c</kbd>
      </summary>
      <ul>
        {others.map((row) => (
          <li key={row.key}>
            <a href={format('compare', [episode.key, row.key], { step: position })}>side by side</a>
            <a href={episodeAddress(row)}>open</a>
            <Outcome outcome={row.outcome} />
            <span>
              {row.policy} <span class="note">{row.source}</span>
            </span>
            <Strip strip={row.strip} />
          </li>
        ))}
      </ul>
    </details>
  )
}

/** All steps in a row, as a place to click; below each, how long it took and how many tokens it used. */
function Rail({ steps, position, onStep, label = 'Steps' }: { steps: Step[]; position: number; onStep: (position: number) => void; label?: string }) {
  const box = useRef<HTMLOListElement>(null)
  const longest = Math.max(...steps.map((step) => step.seconds ?? 0), 1e-9)
  const most = Math.max(...steps.map((step) => step.prompt_tokens + step.completion_tokens), 1)
  useEffect(() => {
    const here = box.current?.children[position] as HTMLElement | undefined
    if (here && box.current) {
      box.current.scrollLeft = Math.max(0, here.offsetLeft - box.current.clientWidth / 2)
    }
  }, [position])
  return (
    <ol class="rail" ref={box} aria-label={label}>
      {steps.map((step, index) => {
        const kind = step.decision ?? step.stated ?? 'none'
        const tokens = step.prompt_tokens + step.completion_tokens
        const failed = step.observations.some((one) => one.failure) || step.calls.some((one) => one.error)
        const title = `Step ${step.index}: ${kind}${step.seconds !== null ? `, ${seconds(step.seconds)}` : ''}${tokens ? `, ${count(tokens)} tokens` : ''}${failed ? ', failed' : ''}`
        return (
          <li key={index}>
            <button
              class={`b-${kind}${index === position ? ' here' : ''}`}
              aria-current={index === position ? 'step' : undefined}
              aria-label={title}
              title={title}
              tabIndex={index === position ? 0 : -1}
              onClick={() => onStep(index)}
            >
              {step.index}
              {failed && <sup aria-hidden="true">✗</sup>}
            </button>
            <span class="time" style={{ width: `${(100 * (step.seconds ?? 0)) / longest}%` }} />
            <span class="tokens" style={{ width: `${(100 * tokens) / most}%` }} />
          </li>
        )
      })}
    </ol>
  )
}

function Mover({ position, steps, index, onStep }: { position: number; steps: number; index: number; onStep: (position: number) => void }) {
  return (
    <div class="mover">
      <button onClick={() => onStep(position - 1)} disabled={position <= 0} aria-label="Step before">
        ←
      </button>
      <h2>
        Step {index} <small>of {steps}</small>
      </h2>
      <button onClick={() => onStep(position + 1)} disabled={position >= steps - 1} aria-label="Next step">
        →
      </button>
    </div>
  )
}

export function Compare({ address }: { address: Address }) {
  const [left = '', right = ''] = address.keys
  const first = useLoaded(() => backend.episode(left), [left], left)
  const second = useLoaded(() => backend.episode(right), [right], right)
  const steps = Math.max(first.data?.steps.length ?? 0, second.data?.steps.length ?? 0)
  const [position, setPosition] = usePosition(address, steps)
  useKeys((pressed) => {
    const next = keyedPosition(pressed, steps)
    if (next !== null) setPosition(next)
    else if (pressed === 'Escape') go(format('episode', [left], { step: position }))
    else return false
    return true
  })
  return (
    <main class="compare">
      <header class="heading">
        <h1>{first.data?.task.id ?? ''}</h1>
        {first.data && second.data && first.data.task.id !== second.data.task.id && (
          <p class="problem">These are episodes of two tasks: the other one is {second.data.task.id}.</p>
        )}
      </header>
      <Mover position={position} steps={steps} index={position} onStep={setPosition} />
      <div class="pair">
        {[first, second].map(({ data, problem }, side) => (
          <section key={side} aria-label={side === 0 ? 'First episode' : 'Second episode'}>
            {data ? <Side episode={data} position={position} onStep={setPosition} /> : <Wait problem={problem} />}
          </section>
        ))}
      </div>
    </main>
  )
}

function Side({ episode, position, onStep }: { episode: Episode; position: number; onStep: (position: number) => void }) {
  const row: Partial<Row> = episode.row ?? {}
  return (
    <>
      <p class="side-head">
        <Outcome outcome={row.outcome ?? episode.stop} />
        <a href={episodeAddress(episode, position)}>{[episode.policy.kind, episode.policy.model].filter(Boolean).join(' ') || episode.id}</a>
        <span class="note">
          {row.source}, {count(episode.steps.length)} steps
          {episode.steps[position]?.confidence != null ? `, ${percent(episode.steps[position]?.confidence)} sure` : ''}
        </span>
      </p>
      <Rail steps={episode.steps} position={position} onStep={onStep} />
      {position < episode.steps.length ? (
        <StepCard episode={episode} position={position} />
      ) : (
        <Empty>It ended after step {episode.steps.at(-1)?.index ?? 0}: {episode.stop.replaceAll('_', ' ')}.</Empty>
      )}
    </>
  )
}
