/** The backend of this page: the server that sent it, or the files next to it. */

import type { Backend } from './backends/contract'
import { ServerBackend } from './backends/server'
import { StaticBackend } from './backends/static'

export const backend: Backend =
  document.documentElement.dataset['static'] === '1' ? new StaticBackend() : new ServerBackend()
