/** Formats numbers and times for people. */

export const UNKNOWN = '–'

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? UNKNOWN : value.toLocaleString('en')
}

export function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN
  if (value >= 1e6) return `${trimmed(value / 1e6)}M`
  if (value >= 1e4) return `${trimmed(value / 1e3)}k`
  return count(value >= 100 ? Math.round(value) : Math.round(value * 100) / 100)
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN
  if (value >= 3600) return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`
  if (value >= 60) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`
  if (value >= 10) return `${value.toFixed(0)} s`
  return value >= 0.1 ? `${value.toFixed(1)} s` : `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`
}

export function money(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN
  return value >= 1 ? `$${value.toFixed(2)}` : `$${value.toFixed(4)}`
}

export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? UNKNOWN : `${Math.round(value * 100)}%`
}

/** A time as `2026-11-21 00:47`. */
export function moment(iso: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(iso)
  return match ? `${match[1]} ${match[2]}` : iso || UNKNOWN
}

function trimmed(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, '')
}
