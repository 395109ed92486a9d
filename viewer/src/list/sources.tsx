/** The sources as a row of links at the top; the arms of an evaluation while it is open. */

import { useEffect, useRef } from 'preact/hooks'
import type { Address } from '../address'
import { readQuery, sourceQuery } from '../filters'
import { count } from '../format'
import type { Overview, Source } from '../types'

/** Sources that are always linked; with more of them, the others are on the overview. */
const MOST = 12

export function Sources({ address, overview }: { address: Address; overview: Overview }) {
  const query = readQuery(address.params)
  const chosen = address.view === 'list' ? query.filters.filter((one) => one.field === 'source' && one.op === 'is').map((one) => String(one.value)) : []
  const open = openEvaluation(address, overview, chosen)
  const box = useRef<HTMLElement>(null)
  const here = `${address.view}/${address.keys.join('/')}/${chosen.join('/')}`
  useEffect(() => {
    const current = box.current?.querySelector<HTMLElement>('[aria-current]')
    if (current && box.current) box.current.scrollLeft = current.offsetLeft - box.current.offsetLeft - 20
  }, [here])
  const roots = overview.sources.filter((source) => !source.parent)
  const isHere = (source: Source) =>
    source.kind === 'evaluation' ? open === source.slug : chosen.includes(source.slug) || address.keys.some((key) => key.split('~')[0] === source.slug)
  const shown = overview.sources.filter((source) =>
    source.parent ? source.parent === open : roots.length <= MOST || source.live || isHere(source),
  )
  return (
    <nav ref={box} class="sources" aria-label="Sources">
      <a href="#/" aria-current={address.view === 'overview' ? 'page' : undefined}>
        Overview
      </a>
      <a href="#/list" aria-current={address.view === 'list' && chosen.length === 0 ? 'page' : undefined}>
        Episodes
      </a>
      {shown.map((source) => (
        <a
          key={source.slug}
          class={`${source.kind}${source.parent ? ' child' : ''}`}
          href={
            source.kind === 'evaluation'
              ? `#/evaluation/${encodeURIComponent(source.slug)}`
              : sourceQuery(source.slug)
          }
          aria-current={
            (source.kind === 'evaluation' ? address.view === 'evaluation' && address.keys[0] === source.slug : chosen.includes(source.slug))
              ? 'page'
              : undefined
          }
          title={source.problem ?? `${source.kind} ${source.name}`}
        >
          {source.live && <span class="pulse" aria-label="in progress" />}
          {source.title}
          {source.kind !== 'evaluation' && (
            <small>
              {count(source.episodes)}
              {source.live && source.planned ? ` of ${count(source.planned)}` : ''}
              {source.indexed < 1 ? `, ${Math.floor(source.indexed * 100)}% read` : ''}
            </small>
          )}
          {source.problem && <span class="warn" role="img" aria-label={source.problem}> ⚠</span>}
        </a>
      ))}
    </nav>
  )
}

/** The evaluation that is open: itself, one of its arms, or an episode of an arm. */
function openEvaluation(address: Address, overview: Overview, chosen: string[]): string | null {
  if (address.view === 'evaluation') return address.keys[0] ?? null
  const slugs = address.view === 'list' ? chosen : address.keys.map((key) => key.split('~')[0])
  const inside = overview.sources.filter((source) => slugs.includes(source.slug))
  return inside.find((source) => source.parent)?.parent ?? null
}
