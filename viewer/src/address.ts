/** The whole state of the page is in its address, after the `#`: `#/episode/KEY?step=3`. */

import { useLayoutEffect, useState } from 'preact/hooks'

export interface Address {
  view: string
  keys: string[]
  params: URLSearchParams
}

export function parse(hash: string): Address {
  const [path = '', query = ''] = split(hash.replace(/^#\/?/, ''), '?')
  const [view = '', ...keys] = path.split('/').map(decoded)
  return { view: view || 'overview', keys, params: new URLSearchParams(query) }
}

export function format(view: string, keys: string[] = [], params: Record<string, string | number | null> = {}): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== '') query.set(name, String(value))
  }
  return written({ view, keys, params: query })
}

export function written({ view, keys, params }: Address): string {
  const path = [view, ...keys].map(encodeURIComponent).join('/')
  const query = params.toString()
  return `#/${path}${query ? `?${query}` : ''}`
}

/** The address with some parameters changed; null removes one. */
export function changed(address: Address, changes: Record<string, string | number | null>): Address {
  const params = new URLSearchParams(address.params)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') params.delete(name)
    else params.set(name, String(value))
  }
  return { ...address, params }
}

/** Opens an address. `replace` for small moves, such as a step, that the back button skips. */
export function go(to: string | Address, replace = false): void {
  const hash = typeof to === 'string' ? to : written(to)
  if (hash === location.hash) return
  if (replace) history.replaceState(null, '', hash)
  else history.pushState(null, '', hash)
  dispatchEvent(new Event('gumshoe-address'))
}

let list = '#/list'

/** The list with the filters and the order that it had last. */
export function lastList(): string {
  return list
}

export function useAddress(): Address {
  const [hash, setHash] = useState(location.hash)
  // A layout effect runs before the screen is drawn, so that no change of the address is missed.
  useLayoutEffect(() => {
    const update = () => setHash(location.hash)
    update()
    for (const event of ['hashchange', 'popstate', 'gumshoe-address']) addEventListener(event, update)
    return () => {
      for (const event of ['hashchange', 'popstate', 'gumshoe-address']) removeEventListener(event, update)
    }
  }, [])
  const address = parse(hash)
  if (address.view === 'list') list = written(address)
  return address
}

function split(text: string, at: string): [string, string] {
  const place = text.indexOf(at)
  return place < 0 ? [text, ''] : [text.slice(0, place), text.slice(place + 1)]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
