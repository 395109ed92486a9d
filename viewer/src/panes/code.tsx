/** The lines of code seen so far, with the state of the debugger. */

import { useEffect, useMemo, useRef } from 'preact/hooks'
import { codeAt, runsOf, type CodeState } from '../code'
import { Empty, Pieces } from '../parts'
import { pythonLines } from '../text'
import { Debugger } from './debugger'
import type { PaneProps } from './pane'

export function CodePane({ episode, position }: PaneProps) {
  const state = useMemo(() => codeAt(episode.steps, position), [episode, position])
  if (!state.path && !state.breakpoints.length) {
    return <Empty>No code shown up to this step.</Empty>
  }
  return (
    <div class={`code-pane${state.program === null && !state.breakpoints.length ? ' calm' : ''}`}>
      {state.path && <Source state={state} path={state.path} />}
      <Debugger state={state} />
    </div>
  )
}

function Source({ state, path }: { state: CodeState; path: string }) {
  const box = useRef<HTMLDivElement>(null)
  const file = state.files.get(path)
  const stops = new Set(state.breakpoints.filter((one) => one.path === path && one.enabled !== false).map((one) => one.line))
  const runs = useMemo(
    () => runsOf(file ?? new Map()).map((run) => ({ start: run.start, lines: pythonLines(run.lines.join('\n')) })),
    [state],
  )
  useEffect(() => {
    const aim = box.current?.querySelector<HTMLElement>('.now') ?? box.current?.querySelector<HTMLElement>('.fresh')
    if (aim && box.current) box.current.scrollTop = aim.offsetTop - box.current.clientHeight / 3
  }, [state])
  return (
    <figure class="source">
      <figcaption>
        {path}
        {state.current !== null && <span class="note"> stopped at line {state.current}</span>}
      </figcaption>
      <div class="lines" ref={box} tabIndex={0} role="region" aria-label={`Lines of ${path} seen so far`}>
        {runs.map((run, part) => (
          <div key={run.start} class="run">
            {part > 0 && <div class="gap">not seen yet</div>}
            {run.lines.map((pieces, index) => {
              const number = run.start + index
              const now = number === state.current
              return (
                <div
                  key={number}
                  class={`code-line${now ? ' now' : ''}${state.fresh.has(number) ? ' fresh' : ''}${stops.has(number) ? ' stop' : ''}`}
                  aria-current={now ? 'true' : undefined}
                >
                  <span class="gutter" aria-label={stops.has(number) ? 'breakpoint' : undefined}>
                    {stops.has(number) ? '●' : now ? '▶' : ''}
                  </span>
                  <span class="no">{number}</span>
                  <code>
                    <Pieces pieces={pieces} />
                    {'\n'}
                  </code>
                </div>
              )
            })}
          </div>
        ))}
      </div>
    </figure>
  )
}
