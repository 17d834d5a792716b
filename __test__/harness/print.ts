import type { Box } from './box.ts'
import { type Finished, run } from './processes.ts'

/** Any call of this box's pi that ends by itself: `pi install …`, `pi --help`. */
export const runPi = (
  box: Box,
  args: readonly string[],
  env: Record<string, string> = {},
  ms = 60_000,
): Promise<Finished> => run(box.host.command, args, { cwd: box.cwd, env: { ...box.env, ...env }, ms })

/** `pi -p`: one prompt, one answer, end. */
export const runPrint = (
  box: Box,
  args: readonly string[],
  prompt: string,
  env: Record<string, string> = {},
): Promise<Finished> => runPi(box, [...args, '-p', prompt], env)
