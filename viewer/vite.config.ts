import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type Plugin } from 'vite'

const OUT = join(import.meta.dirname, '../eval/view/page')

/** What the built files are made from; the Python tests work out the same digest. */
const SOURCES = ['index.html', 'package-lock.json', 'package.json', 'public/icon.svg', 'tsconfig.json', 'vite.config.ts']

function digest(): string {
  const hash = createHash('sha256')
  const inner = readdirSync('src', { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`)
  for (const name of [...SOURCES, ...inner].sort()) {
    hash.update(`${name}\0`).update(readFileSync(name)).update('\0')
  }
  return hash.digest('hex')
}

/** The page is opened from a disk, too, where browsers refuse modules: the script is a plain one, at the end. */
function plainScript(): Plugin {
  return {
    name: 'plain-script',
    // Tests load this file, too, and build nothing.
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler: (html) => html.replace(/<script type="module" crossorigin/, '<script defer').replace(/ crossorigin/g, ''),
    },
    closeBundle() {
      writeFileSync(join(OUT, 'sources.sha256'), `${digest()}\n`)
    },
  }
}

export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [plainScript()],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: {
      output: { format: 'iife', entryFileNames: 'app.js', assetFileNames: 'app[extname]' },
    },
  },
})
