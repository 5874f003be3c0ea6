import { defineConfig } from 'vite';

// Names without hashes: the program embeds the three files. built/ is committed, so that building the
// program needs no Node; `make test-web` fails when it is not what the sources give.
export default defineConfig({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    outDir: 'built',
    emptyOutDir: true,
    target: 'es2021',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: 'page.js',
        inlineDynamicImports: true,
        assetFileNames: 'page[extname]',
      },
    },
  },
});
