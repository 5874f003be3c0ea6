import { defineConfig } from 'vite';

// Names without hashes: the program embeds the three files and serves them with an ETag of its own.
export default defineConfig({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
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
