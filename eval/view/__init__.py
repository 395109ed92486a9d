"""The viewer of traces, datasets and evaluations: `gumshoe view`, and the page in the folder of an evaluation.

    folders ──sources──> Source ──catalog──> Catalog ──library──> Library ──server──> a browser (`page/`, from viewer/)
                         a run, a dataset    every episode,       every answer,  └─static──> files that open without us
                         or an evaluation    kept up to date      as JSON

| part | holds |
|---|---|
| `sources` | what there is in the folders that were given, and the gold patches of its tasks |
| `episodes` | episodes as records, whatever they are stored in: a line of a run, a row of a dataset, a journal |
| `rows` | what the list shows of an episode, and the words that can be searched in it |
| `catalog` | reads everything once, then only what is new, in a thread; the list and the search |
| `episode_page`, `evaluation_pages` | what the pages of an episode, an evaluation and a task show, as JSON |
| `library` | one method for each address of the server; joins the catalog, the gold patches and the pages |
| `server`, `static` | the same answers over HTTP, and as files |

`viewer/src/types.ts` declares what the pages get. The front end never reads the stored files themselves.
"""
