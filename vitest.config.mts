import { defineConfig } from 'vitest/config'

const E2E = '__test__/e2e/**/*.test.ts'

export default defineConfig({
  test: {
    // The addon is CommonJS: Node.js loads it itself, as it does for users.
    server: { deps: { external: [/\/index\.js$/] } },
    pool: 'forks',
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['__test__/**/*.test.ts'],
          exclude: [E2E],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        // Real processes of pi share the machine: one file after the other, and deadlines that a busy machine keeps.
        test: {
          name: 'e2e',
          include: [E2E],
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
})
