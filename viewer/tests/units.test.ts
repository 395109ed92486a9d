import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { changed, format, parse, written } from '../src/address'
import { cleaned, visible } from '../src/clean'
import { codeAt, hunksOf, runsOf } from '../src/code'
import { EVERYTHING, meets, nearestField, ranged, readQuery, readTyped, scopeOf, toggled, unknownFields, writeQuery, type Filter } from '../src/filters'
import { money, moment, percent, seconds, short } from '../src/format'
import { written as measured } from '../src/evaluation/measure'
import { markOf } from '../src/panes/pack'
import { findMarks, marked, piecesOf, pythonLines } from '../src/text'
import { partsOf, tallyOf } from '../src/overview/tally'
import { qualityOf } from '../src/parts'
import { inScope } from '../src/table'
import type { Row, Source, Step } from '../src/types'

const row = { key: 'a', outcome: 'resolved', steps: 3, tokens: null, task: 'T', facts: { 'tag.x': 'y' } } as unknown as Row

describe('addresses', () => {
  test('hold any text and come back as they were', () => {
    const address = format('episode', ['a/b?c#d%'], { step: 3, q: 'x&y=z', none: null })
    const read = parse(address)
    expect([read.view, read.keys, read.params.get('step'), read.params.get('q')]).toEqual(['episode', ['a/b?c#d%'], '3', 'x&y=z'])
    expect(written(changed(read, { step: null }))).not.toContain('step')
    expect(parse('').view).toBe('overview')
    expect(parse('#/x/%E0%A4%A').keys).toEqual(['%E0%A4%A'])
  })
})

describe('findings', () => {
  test('are judged by the run of their probe, and by the quote where there was none', () => {
    const check = (status: 'confirmed' | 'contradicted' | 'unchecked', telling: boolean | null = null) => ({ status, telling, note: '' })
    expect(markOf({ check: check('confirmed', true), quoted: true })).toEqual({ kind: 'good', sign: '✓ confirmed' })
    expect(markOf({ check: check('confirmed', false), quoted: true }).kind).toBe('')
    expect(markOf({ check: check('contradicted'), quoted: true })).toEqual({ kind: 'bad', sign: '✗ contradicted' })
    expect(markOf({ check: check('confirmed', true), quoted: false })).toEqual({ kind: 'bad', sign: '✗ not quoted' })
    expect([check('unchecked'), null].map((one) => markOf({ check: one, quoted: true }).sign)).toEqual(['· quoted, unchecked', '· quoted, unchecked'])
  })
})

describe('filters', () => {
  test('stand in the address and come back', () => {
    const query = { filters: [{ field: 'a b', op: '>=', value: '1|2' } as Filter], text: 'x "y z"', sort: 'cost', columns: ['task', 'tag.x'], scope: 'rows' as const }
    expect(readQuery(new URLSearchParams(writeQuery(query).toString()))).toEqual(query)
    expect(readQuery(new URLSearchParams('f=broken&f=a|like|b')).filters).toEqual([])
  })
  test('are read from what was typed', () => {
    const fields = [{ name: 'steps', numeric: true }, { name: 'failed calls', numeric: true }, { name: 'policy', numeric: false }]
    expect(readTyped('steps>=5 failed-calls:0 policy:"a b" no:field "two words"', fields)).toEqual({
      filters: [
        { field: 'steps', op: '>=', value: '5' },
        { field: 'failed calls', op: 'is', value: '0' },
        { field: 'policy', op: 'is', value: 'a b' },
      ],
      text: 'no:field "two words"',
    })
  })
  test('that name no field are found, and text that only looks like one is left alone', () => {
    const fields = [{ name: 'steps', numeric: true }, { name: 'failed calls', numeric: true }, { name: 'tag.x', numeric: false }]
    const query = { ...EVERYTHING, text: 'stpes>5 cart.py:12 "x=1" failed-calls:2 tag.y:1 x::y https://x.org', filters: [{ field: 'color', op: 'is', value: 1 } as Filter] }
    expect(unknownFields(query, fields)).toEqual(['stpes', 'tag.y', 'color'])
    expect(['stpes', 'failed_calls', 'nonsense'].map((name) => nearestField(name, fields))).toEqual(['steps', 'failed-calls', null])
  })
  test('decide between episodes and dataset rows', () => {
    const sources = [{ slug: 'a', kind: 'run' }, { slug: 'd', kind: 'dataset' }] as Source[]
    const of_source = (value: string) => ({ ...EVERYTHING, filters: [{ field: 'source', op: 'is', value } as Filter] })
    expect([EVERYTHING, of_source('a'), of_source('d'), { ...of_source('d'), scope: 'episodes' as const }].map((query) => scopeOf(query, sources))).toEqual([
      'episodes', 'episodes', 'rows', 'episodes',
    ])
    expect(scopeOf(EVERYTHING, sources.slice(1))).toBe('rows')
    const rows = [{ kind: 'run' }, { kind: 'dataset' }] as Row[]
    expect([inScope(rows, 'episodes'), inScope(rows, 'rows')]).toEqual([rows.slice(0, 1), rows.slice(1)])
  })
  test.each([
    ['outcome', 'is', 'resolved', true],
    ['outcome', 'not', 'resolved', false],
    ['tag.x', 'has', 'Y', true],
    ['tokens', 'unknown', '', true],
    ['tokens', '<', 5, false],
    ['steps', '>', 2, true],
    ['steps', '<=', 2, false],
    ['steps', '>=', '', false],
    ['nothing', 'is', '', true],
  ])('%s %s %s is %s', (field, op, value, expected) => {
    expect(meets(row, [{ field, op, value } as Filter])).toBe(expected)
  })
  test('of one field mean any of its values, and can be left aside', () => {
    const filters: Filter[] = [{ field: 'outcome', op: 'is', value: 'x' }]
    expect(meets(row, filters)).toBe(false)
    expect(meets(row, filters, 'outcome')).toBe(true)
    expect(meets(row, toggled(filters, { field: 'outcome', op: 'is', value: 'resolved' }))).toBe(true)
    expect(toggled(filters, filters[0] as Filter)).toEqual([])
    expect(ranged([{ field: 'steps', op: '<', value: 1 }, ...filters], 'steps', [])).toEqual(filters)
  })
})

describe('hostile text', () => {
  test('acting characters become signs, in names of fields too', () => {
    expect(visible('a\u001b[2J\u202eb\r\u0000\u007f')).toBe('a⟨ESC⟩[2J⟨U+202E⟩b⟨CR⟩⟨NUL⟩⟨DEL⟩')
    expect(visible('tab\tand\nline')).toBe('tab\tand\nline')
    expect(cleaned({ 'k\u0007': ['\u200b', 1, null] })).toEqual({ 'k⟨BEL⟩': ['⟨U+200B⟩', 1, null] })
  })
})

describe('text', () => {
  test('pieces and marks never lose or add a character', () => {
    const text = 'cart.py 1-2 of 2 lines\n 1 def f():\n*2     return "x"'
    const pieces = piecesOf('view', text)
    expect(pieces.map((piece) => piece.text).join('')).toBe(text)
    const marks = findMarks(text, [{ text: 'def   f():', kind: 'quoted' }, { text: 'f(', kind: 'late' }])
    expect(marks).toHaveLength(1)
    const found = marked(pieces, marks)
    expect(found.map((piece) => piece.text).join('')).toBe(text)
    expect(found.filter((piece) => piece.mark).map((piece) => piece.text).join('')).toBe('def f():')
  })
  test.each(['pdb', 'eval', 'rewrite', 'grep'])('%s is shown whole', (tool) => {
    const text = 'FAILED a\n> a.py:3 in f\n->3 x = 1\n@@ -1 +1 @@\n-a\n+b\nNameError: x\n'
    expect(piecesOf(tool, text).map((piece) => piece.text).join('')).toBe(text)
  })
  test('Python is colored line by line', () => {
    expect(pythonLines('def f():\n    return 1')[0]?.[0]).toEqual({ text: 'def', kind: 'tok-keyword' })
    expect(pythonLines('x'.repeat(100_000))).toHaveLength(1)
  })
})

describe('code', () => {
  const step = (index: number, code: object) => ({ index, observations: [{ code }] }) as unknown as Step
  const steps = [
    step(0, { path: 'a.py', lines: [[1, 'one'], [2, 'two'], [3, 'three'], [9, 'nine']] }),
    step(1, { path: 'a.py', lines: [[2, 'two']], current: 2, breakpoints: [{ path: 'a.py', line: 2 }], frames: [{}], state: 'stopped' }),
    step(2, { path: 'a.py', diff: '@@ -1,3 +1,4 @@\n one\n-two\n+deux\n+trois\n three' }),
  ]
  test('follows changes and keeps what was seen', () => {
    const state = codeAt(steps, 2)
    expect(runsOf(state.files.get('a.py') ?? new Map())).toEqual([
      { start: 1, lines: ['one', 'deux', 'trois', 'three'] },
      { start: 10, lines: ['nine'] },
    ])
    expect([...state.fresh]).toEqual([2, 3])
    expect(state.edits).toHaveLength(1)
    expect([state.current, state.program]).toEqual([null, 'exited'])
  })
  test('knows where the program stands', () => {
    const state = codeAt(steps, 1)
    expect([state.current, state.frames.length, state.breakpoints.length, state.program]).toEqual([2, 1, 1, 'stopped'])
    const over = codeAt([...steps.slice(0, 2), step(2, { state: 'exited', breakpoints: [{ path: 'a.py', line: 2 }] })], 2)
    expect([over.current, over.frames.length, over.breakpoints.length, over.program]).toEqual([null, 0, 1, 'exited'])
  })
  test('reads hunks that only put in', () => {
    expect(hunksOf('@@ -0,0 +1,2 @@\n+a\n+b')).toEqual([{ start: 1, length: 0, after: 1, lines: ['+a', '+b'] }])
  })
})

test('numbers and times', () => {
  expect([short(12_345), short(2_500_000), short(7), short(null)]).toEqual(['12.3k', '2.5M', '7', '–'])
  expect([seconds(0.0023), seconds(0.5), seconds(12), seconds(75), seconds(7300)]).toEqual(['2.3 ms', '0.5 s', '12 s', '1 min 15 s', '2 h 2 min'])
  expect([money(0.01), money(2.5), percent(0.456), moment('2026-01-02T03:04:05Z')]).toEqual(['$0.0100', '$2.50', '46%', '2026-01-02 03:04'])
})

/** What a person with dichromatic vision sees, after Machado et al. (2009), severity 1, in linear RGB. */
const VISION: Record<string, number[][]> = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}

function lab(hex: string, vision: number[][]): number[] {
  const linear = [1, 3, 5].map((at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  const times = (matrix: number[][], vector: number[]) => matrix.map((line) => line.reduce((sum, one, at) => sum + one * (vector[at] ?? 0), 0))
  const seen = times(vision, linear).map((one) => Math.min(1, Math.max(0, one)))
  const xyz = times([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], seen)
  const [x = 0, y = 0, z = 0] = xyz.map((one, at) => {
    const share = one / [0.95047, 1, 1.08883][at]!
    return share > 0.008856 ? Math.cbrt(share) : 7.787 * share + 16 / 116
  })
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}

describe('measures', () => {
  test.each([
    ['share', 0.25, '25%'],
    ['', 3.88, '3.88'],
    ['lines', 1, '1'],
    ['dollars', 0.0042, '$0.0042'],
    ['tokens', 6348.88, '6,349'],
    ['tokens', 12_345, '12.3k'],
  ])('in the unit %j, %d is written %s', (unit, value, text) => {
    expect(measured({ title: '', help: '', unit }, value)).toBe(text)
  })
  test('without a known unit are plain numbers', () => {
    expect(measured(undefined, 0.5)).toBe('0.5')
  })
})

describe('the overview', () => {
  test('counts outcomes, the good ones first, and what is known of costs', () => {
    const rows = [
      { outcome: 'miss', steps: 2, tokens: null, cost: 0.5, created: '2026-01-02' },
      { outcome: 'hit', steps: 4, tokens: 10, cost: null, created: '2026-01-01' },
      { outcome: 'reported', steps: 3, tokens: 5, cost: 1, created: '' },
    ] as Row[]
    const tally = tallyOf(rows)
    expect(tally.outcomes.map((one) => [one.outcome, one.quality, one.count])).toEqual([['hit', 'good', 1], ['miss', 'bad', 1], ['reported', 'other', 1]])
    expect([tally.episodes, tally.steps, tally.tokens, tally.cost, tally.last]).toEqual([3, 3, 15, 1.5, '2026-01-02'])
    expect(tallyOf([])).toEqual({ episodes: 0, outcomes: [], steps: null, tokens: null, cost: null, last: '' })
    expect(['reported', 'resolved', 'not resolved', 'running'].map(qualityOf)).toEqual(['other', 'good', 'bad', 'running'])
  })
  test('counts the rows of a dataset, and the episodes that they were made from', () => {
    const row = (view: string, split: string, episode: string) => ({ id: `${episode}/1`, facts: { view, split, episode } }) as unknown as Row
    expect(partsOf([row('agent', 'train', 'a'), row('agent', 'train', 'a'), row('agent', 'test', 'b')])).toMatchObject([
      { view: 'agent', split: 'train', rows: 2, episodes: 1 },
      { view: 'agent', split: 'test', rows: 1, episodes: 1 },
    ])
  })
})

describe('colors', () => {
  const css = readFileSync('src/styles/base.css', 'utf8')
  const schemes = { light: css.slice(0, css.indexOf("[data-theme='dark']")), dark: css.slice(css.indexOf("[data-theme='dark']")) }
  const color = (scheme: string, name: string) => new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(scheme)?.[1] ?? ''
  const names = ['seek', 'edit', 'verify', 'report', 'submit', 'none']
  for (const [scheme, text] of Object.entries(schemes)) {
    for (const [vision, matrix] of Object.entries(VISION)) {
      test(`decisions can be told apart in ${scheme} with ${vision}`, () => {
        for (const [at, one] of names.entries()) {
          for (const other of names.slice(at + 1)) {
            const [a, b] = [lab(color(text, one), matrix), lab(color(text, other), matrix)]
            const distance = Math.hypot(...a.map((value, index) => value - (b[index] ?? 0)))
            expect(distance, `${one} and ${other}`).toBeGreaterThan(16)
          }
        }
      })
      test(`arms look neither like decisions nor like each other in ${scheme} with ${vision}`, () => {
        const arms = [0, 1, 2, 3, 4, 5].map((number) => `arm${number}`)
        for (const [at, one] of arms.entries()) {
          for (const other of [...names, ...arms.slice(at + 1)]) {
            const [a, b] = [lab(color(text, one), matrix), lab(color(text, other), matrix)]
            const distance = Math.hypot(...a.map((value, index) => value - (b[index] ?? 0)))
            expect(distance, `${one} and ${other}`).toBeGreaterThan(vision === 'normal' ? 30 : 15)
          }
        }
      })
    }
  }
})
