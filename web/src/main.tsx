import { render } from 'preact';
import './page.css';
import { App } from './app';
import { start } from './state';

const root = document.getElementById('app');
if (root) {
  render(<App />, root);
  start();
}
