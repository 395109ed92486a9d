/** The JSON that the server sends, and that the files of a static copy hold. */

export interface Source {
  slug: string
  kind: 'run' | 'dataset' | 'evaluation'
  name: string
  /** Its name; of an arm of an evaluation, its label. */
  title: string
  parent: string | null
  episodes: number
  live: boolean
  planned: number | null
  indexed: number
  problem: string | null
}

export interface Field {
  name: string
  numeric: boolean
}

export interface Overview {
  version: number
  searchable: boolean
  masks: boolean
  sources: Source[]
}

export type Value = string | number | null

export interface Row {
  key: string
  source: string
  kind: Source['kind']
  live: boolean
  id: string
  task: string
  project: string
  policy: string
  outcome: string
  stop: string
  created: string
  steps: number
  tokens: number | null
  cost: number | null
  seconds: number | null
  strip: string
  facts?: Record<string, Value>
}

export interface Values {
  name: string
  kind: 'values'
  values: { value: string | number; count: number; all: number }[]
  rest: number
}

export interface Numbers {
  name: string
  kind: 'numbers'
  low: number
  width: number
  whole: boolean
  counts: number[]
  all: number[]
}

export type Distribution = Values | Numbers

export interface Call {
  id: string
  name: string
  arguments: unknown
  error: string | null
  raw: string | null
}

export interface Breakpoint {
  path?: string
  line?: number
  condition?: string
  temporary?: boolean
  enabled?: boolean
  hits?: number
}

export interface Frame {
  path: string
  line: number
  function: string
  code: string
  locals: [string, string][]
}

export interface Code {
  path?: string
  lines?: [number, string][]
  current?: number
  diff?: string
  breakpoints?: Breakpoint[]
  frames?: Frame[]
  frame?: number
  state?: string
  reason?: string
}

export interface Observation {
  tool: string
  text: string
  failure: { kind: string; message: string } | null
  truncated: boolean
  seconds: number | null
  code: Code
}

export interface Step {
  index: number
  message_index: number
  decision: string | null
  stated: string | null
  rationale: string | null
  confidence: number | null
  text: string
  reasoning: string | null
  calls: Call[]
  observations: Observation[]
  elided: number
  reward: number | null
  /** What it says that no earlier message contains. */
  unseen: { where: 'rationale' | 'call' | 'report' | 'edit'; kind: 'place' | 'name' | 'number' | 'string'; text: string }[]
  started: number | null
  seconds: number | null
  asking: number | null
  prompt_tokens: number
  completion_tokens: number
  cached_tokens: number
  cost: number | null
}

export interface Message {
  role: string
  content: string
  left_out?: string
  reasoning: string | null
  calls: Call[]
  name: string | null
}

export interface Finding {
  claim: string
  step: number
  quote: string
  /** Whether the quote is in the output of the step. */
  quoted: boolean
  /** Where its probe looks; null where it has none. */
  place: string | null
  probe: { kind: 'stop' | 'whatif'; expression?: string; value?: string; effect?: string } | null
  /** What came of running the probe; null where none was ever run. */
  check: { status: 'confirmed' | 'contradicted' | 'unchecked'; telling: boolean | null; note: string } | null
  known: boolean
}

export interface PackLocation {
  path: string
  start: number
  end: number
  symbol: string | null
  why: string
  hit: boolean | null
}

export interface Pack {
  hypothesis: string
  locations: PackLocation[]
  findings: Finding[]
  ruled_out: { what: string; why: string }[]
  failing_frame: { path: string; line: number; function: string; code: string } | null
  missed: { path: string; line: number }[]
  /** The test file that was written from the issue; null where there is none. */
  reproduction: { path: string; code: string } | null
}

/** An attempt to fix the bug: by a solver, or by the arm's agent itself. */
export interface Answer {
  arm: string
  title: string
  sample: number
  mine: boolean
  itself: boolean
  solved: number | null
  official: number | null
  tests: string
  patch: string
  like_gold: boolean | null
  steps: number | null
  tokens: number | null
  cost: number | null
  seconds: number | null
  /** The solver's episode; null where the solver is a script. */
  key: string | null
  /** For each location of this episode's pack, whether the patch changes it; null for other packs. */
  edited: boolean[] | null
  elsewhere: { path: string; line: number }[]
}

export interface Evaluated {
  evaluation: string
  arm: string
  title: string
  solver: string
  scores: Record<string, number | null>
  /** For a solver's episode: the seeker's episode whose pack it got. */
  given: string | null
  answers: Answer[]
}

/** A decision that was tried at a step of a tree; `outcome` is how the episode that it belongs to ended. */
export interface Tried {
  key: string | null
  outcome: string
  mine: boolean
  decision: string | null
  calls: { name: string; arguments: Record<string, unknown> }[]
  value: number | null
  count: number
  advantage: number | null
}

export interface Episode {
  key: string
  kind: Source['kind']
  live: boolean
  id: string
  task: { id: string; source: string; tags: Record<string, string> }
  policy: { kind: string; model: string; agent: string }
  provenance: Record<string, Value>
  stop: string
  resolved: boolean | null
  scores: { name: string; value: number | null; explanation: string }[]
  errors: string[]
  tampering: string[]
  usage: { prompt_tokens?: number; completion_tokens?: number; cost_usd?: number | null }
  tools: { name: string; description: string; parameters: unknown }[]
  messages: Message[]
  steps: Step[]
  patch: string
  pack: Pack | null
  gold: string | null
  exact: boolean
  cut: number
  row: Row | null
  siblings: Row[]
  /** The steps at which something else was tried, too. */
  tree: { step: number; tried: Tried[] }[]
  evaluated: Evaluated | null
}

export interface Mask {
  model: string
  parts: [string, 'trained' | 'masked' | 'read', number][]
  tokens: number
  trained: number
}

export interface Measured {
  value: number | null
  low: number | null
  high: number | null
  count: number
}

export interface Arm {
  name: string
  title: string
  policy: { kind: string; model: string; agent: string }
  episodes: number
  failed: number
  groups: Record<string, Record<string, Measured>>
  seeks: boolean
  per_resolved: Record<string, Record<string, Measured>>
  tools: Record<string, number>
  calibration: { confidence: number; right: number; count: number }[]
  calibration_error: number | null
}

export interface Comparison {
  arm: string
  baseline: string
  group: string
  metric: string
  difference: Measured
  better: number
  worse: number
  mcnemar_p: number | null
}

export interface Result {
  arm: string
  task: string
  split: string
  sample: number
  stop: string | null
  scores: Record<string, number | null>
  tags: Record<string, string>
  key: string | null
  solver_key: string | null
}

export interface Metric {
  title: string
  help: string
  /** `share` for what lies between 0 and 1, `dollars`, or the plural of what is counted; empty for a plain number. */
  unit: string
}

export interface EvaluationTask {
  task: string
  prompt: string
  gold: string | null
  attempts: {
    arm: string
    sample: number
    solved: number | null
    official: number | null
    tests: string
    patch: string
    key: string | null
    solver_key: string | null
  }[]
}

export interface Evaluation {
  timing: Record<string, Record<string, Record<string, Measured>>>
  metrics: Record<string, Metric>
  tasks: string[]
  slug: string
  name: string
  summary: {
    title: string
    seed: number
    tasks: Record<string, number>
    arms: Arm[]
    comparisons: Comparison[]
    flaky: { task_id: string; passed: number; runs: number; why?: string }[]
    solver: string
    baseline: string
    losses: { label: string; points: [number, number][] }[]
  } | null
  results: Result[]
}
