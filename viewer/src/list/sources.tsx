/** The sources as a row of links above everything; the arms of an evaluation where one is within it. */

import { useEffect, useRef } from 'preact/hooks'
import type { Address } from '../address'
import { readQuery, writeQuery } from '../filters'
import { count } from '../format'
import type { Overview } from '../types'

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
  return (
    <nav ref={box} class="sources" aria-label="Sources">
      <a href="#/list" aria-current={address.view === 'list' && chosen.length === 0 ? 'page' : undefined}>
        Everything
      </a>
      {overview.sources.filter((source) => !source.parent || source.parent === open).map((source) => (
        <a
          key={source.slug}
          class={`${source.kind}${source.parent ? ' child' : ''}`}
          href={
            source.kind === 'evaluation'
              ? `#/evaluation/${encodeURIComponent(source.slug)}`
              : `#/list?${writeQuery({ filters: [{ field: 'source', op: 'is', value: source.slug }], text: '', sort: '-created' })}`
          }
          aria-current={
            (source.kind === 'evaluation' ? address.view === 'evaluation' && address.keys[0] === source.slug : chosen.includes(source.slug))
              ? 'page'
              : undefined
          }
          title={source.problem ?? `${source.kind} ${source.name}`}
        >
          {source.live && <span class="pulse" aria-label="in progress" />}
          {source.name}
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

/** The evaluation that the page is about: its own, one of its arms, or an episode of an arm. */
function openEvaluation(address: Address, overview: Overview, chosen: string[]): string | null {
  if (address.view === 'evaluation') return address.keys[0] ?? null
  const slugs = address.view === 'list' ? chosen : address.keys.map((key) => key.split('~')[0])
  const inside = overview.sources.filter((source) => slugs.includes(source.slug))
  return inside.find((source) => source.parent)?.parent ?? null
}
