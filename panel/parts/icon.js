// Icons: strokes on a grid of 20, in the text's colour. Each accompanies some text, so it needs no accessible name.
import { html } from "./html.js";

const STROKES = {
  deliveries: "M3 5h14v10H3zM3 6l7 5 7-5",
  webhooks: "M7 8a3 3 0 1 1 4 2.8L8.5 15M13 12a3 3 0 1 1-2 4.3H5.5M8.6 9.5 6 14a2.5 2.5 0 1 1-2.2-1",
  "event-types": "M4 5h12M4 10h12M4 15h7",
  providers: "M2.5 5.5h15v9h-15zM2.5 8.5h15M5.5 12h3",
  applications: "M3.5 3.5h5v5h-5zM11.5 3.5h5v5h-5zM3.5 11.5h5v5h-5zM14 11v6M11 14h6",
  links: "M8.5 11.5a3 3 0 0 0 4.2 0l3-3a3 3 0 0 0-4.2-4.2l-1 1M11.5 8.5a3 3 0 0 0-4.2 0l-3 3a3 3 0 0 0 4.2 4.2l1-1",
  delivered: "M4.5 10.5 8.5 14.5 15.5 6",
  failed: "M6 6l8 8M14 6l-8 8",
  retrying: "M15.5 8A6 6 0 1 0 16 11.5M16 4v4h-4",
  pending: "M10 5v5l3 2M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14",
  cancelled: "M4.8 4.8l10.4 10.4M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14",
  paused: "M7 5v10M13 5v10",
  copy: "M7 7h9v9H7zM13 7V4H4v9h3",
  search: "M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4zM13 13l4 4",
  plus: "M10 4v12M4 10h12",
  resend: "M3 10h13M11 5l5 5-5 5",
  back: "M17 10H4M9 5l-5 5 5 5",
  open: "M8 5l5 5-5 5",
  down: "M5 8l5 5 5-5",
  warning: "M10 3 2.5 16.5h15zM10 8v4M10 14.2v.3",
  info: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 9v5M10 6.2v.3",
  key: "M12.5 3.5a4 4 0 1 0-3.2 6.4L4 15.2V17h3v-2h2v-2l1.7-1.7A4 4 0 0 0 12.5 3.5z",
  leave: "M8 4H4v12h4M12 6l4 4-4 4M16 10H8",
  menu: "M3 6h14M3 10h14M3 14h14",
  filter: "M3 5h14l-5.5 6.5V16l-3-1.5v-3z",
};

export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><path d=${STROKES[name]} /></svg>`;
