/** What the solver did with a pack: its patch next to the gold patch, tests, costs; and the task's other attempts. */

import { format } from '../address'
import { count, money, seconds, short } from '../format'
import { Diff, Empty, episodeAddress, linesOf } from '../parts'
import type { Answer, Evaluated, Pack } from '../types'

interface Props {
  evaluated: Evaluated
  pack: Pack | null
  gold: string | null
}

export function Solver({ evaluated, pack, gold }: Props) {
  const mine = evaluated.answers.find((one) => one.mine)
  const others = evaluated.answers.filter((one) => !one.mine)
  return (
    <section class="solver" aria-label="What the solver did">
      <h3>
        {mine?.itself ? 'What its patch did' : pack || evaluated.given ? 'What the solver did with it' : 'What the solver did without a pack'}{' '}
        <small>{evaluated.solver}</small> <a href={format('evaluation', [evaluated.evaluation])}>The evaluation</a>
      </h3>
      {mine ? <Mine answer={mine} evaluated={evaluated} gold={gold} /> : <Empty>No solver worked on this episode.</Empty>}
      {others.length > 0 && (
        <>
          <h4>With other packs, and without</h4>
          <ul class="answers">
            {others.map((one) => (
              <Other key={`${one.arm}/${one.sample}`} answer={one} evaluated={evaluated} />
            ))}
          </ul>
        </>
      )}
      <Scores scores={evaluated.scores} />
    </section>
  )
}

function Mine({ answer, evaluated, gold }: { answer: Answer; evaluated: Evaluated; gold: string | null }) {
  return (
    <article class="answer-card" aria-label="With this pack">
      <p class="answer-head">
        <Solved answer={answer} />
        <span>{answer.title}</span>
        {answer.sample > 0 && <span class="note">attempt {answer.sample + 1}</span>}
        {answer.like_gold && <span class="good">✓ same change as gold</span>}
        <Spent answer={answer} scripted={isScripted(evaluated)} />
        <Steps answer={answer} />
      </p>
      {testsOf(answer) && <p>Tests: {testsOf(answer)}.</p>}
      <Edited answer={answer} />
      {answer.patch ? <Patches answer={answer} gold={gold} /> : <p class="note">No patch was made.</p>}
    </article>
  )
}

function Patches({ answer, gold }: { answer: Answer; gold: string | null }) {
  return (
    <div class="patches">
      <figure class="diff">
        <figcaption>{answer.itself ? 'Its patch' : 'The solver’s patch'}</figcaption>
        <Diff text={answer.patch} />
      </figure>
      {gold !== null && (
        <figure class="diff">
          <figcaption>The gold patch</figcaption>
          <Diff text={gold} />
        </figure>
      )}
    </div>
  )
}

function Edited({ answer: { edited, elsewhere, patch } }: { answer: Answer }) {
  if (!edited?.length || !patch) return null
  const changed = edited.filter(Boolean).length
  const beside = elsewhere.map((one) => linesOf(one.path, one.line)).join(', ')
  return (
    <p>
      {edited.length === 1
        ? `It ${changed ? 'changed' : 'did not change'} the location that the pack names`
        : `It changed ${changed} of the ${edited.length} locations that the pack names`}
      {beside ? (
        <>
          {changed ? ', and also ' : ', but '}
          <code>{beside}</code>
        </>
      ) : (
        ', and nothing else'
      )}
      .
    </p>
  )
}

/** The results of the tests. That there is no patch is shown separately. */
function testsOf({ tests, patch }: Answer): string {
  return !patch && tests.startsWith('no patch') ? '' : tests
}

function Other({ answer, evaluated }: { answer: Answer; evaluated: Evaluated }) {
  const head = (
    <>
      <Solved answer={answer} />
      <span>
        {answer.title}
        {answer.sample > 0 && <span class="note"> attempt {answer.sample + 1}</span>}
      </span>
      <Spent answer={answer} scripted={isScripted(evaluated)} />
      <Steps answer={answer} />
    </>
  )
  return (
    <li>
      <p class="answer-head">{head}</p>
      {(answer.patch || testsOf(answer)) && (
        <details>
          <summary>
            {answer.patch ? 'Patch' : 'Tests'}
            {answer.like_gold && <span class="good"> ✓ same change as gold</span>}
          </summary>
          {testsOf(answer) && <p>Tests: {testsOf(answer)}.</p>}
          {answer.patch && <Diff text={answer.patch} />}
        </details>
      )}
    </li>
  )
}

function Solved({ answer: { solved, official } }: { answer: Answer }) {
  const [kind, text] = solved === null ? ['', '· not graded'] : solved === 1 ? ['good', '✓ resolved'] : ['bad', '✗ not resolved']
  return (
    <span class={`solved ${kind}`}>
      {text}
      {official !== null && official !== undefined && <small> official harness: {official === 1 ? 'resolved' : 'not resolved'}</small>}
    </span>
  )
}

function Spent({ answer, scripted }: { answer: Answer; scripted: boolean }) {
  const facts = [
    answer.steps !== null && many(answer.steps, scripted && !answer.itself ? ['try', 'tries'] : ['step', 'steps']),
    answer.tokens !== null && `${short(answer.tokens)} tokens`,
    answer.cost !== null && money(answer.cost),
    answer.seconds !== null && seconds(answer.seconds),
  ].filter((one) => one !== false)
  return <span class="note">{facts.join(', ')}</span>
}

function Steps({ answer }: { answer: Answer }) {
  if (!answer.key) return null
  return <a href={episodeAddress({ key: answer.key })}>Its steps</a>
}

function Scores({ scores }: { scores: Record<string, number | null> }) {
  const known = Object.entries(scores).filter(([, value]) => value !== null)
  if (!known.length) return null
  return (
    <details>
      <summary>This episode&rsquo;s scores</summary>
      <dl class="facts">
        {known.map(([name, value]) => (
          <div key={name}>
            <dt>{name.replaceAll('_', ' ')}</dt>
            <dd>{Math.round((value ?? 0) * 1000) / 1000}</dd>
          </div>
        ))}
      </dl>
    </details>
  )
}

function isScripted({ solver }: Evaluated): boolean {
  return solver.startsWith('scripted')
}

function many(number: number, [one, more]: [string, string]): string {
  return `${count(number)} ${number === 1 ? one : more}`
}
