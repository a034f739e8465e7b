// The HTML document of every page: one self-contained file, light and dark, for screens of any width and for print.

import { escapeHtml } from "./format.ts";
import { chartStyle } from "./svg-chart.ts";

/** A complete HTML document. `body` is markup: untrusted text in it must already be escaped. */
export function htmlPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${escapeHtml(title)}</title>
<style>${STYLE}${chartStyle()}</style>
</head>
<body><main>
${body}
</main></body>
</html>
`;
}

/** Markup to embed in another page, such as a notebook's output, with scoped styles. */
export function htmlFragment(body: string): string {
  const style = `${STYLE}${chartStyle()}`.replaceAll(":root", "&").replaceAll("body{", "&{");
  const own = ".sqlenv.sqlenv"; // doubled to outrank the page's rules for tables and headings
  return `<div class="sqlenv"><style>${own}{${style}}${own}{padding:12px;border-radius:8px}</style>${body}</div>`;
}

const STYLE = `
:root{color-scheme:light dark;--back:#f6f8fa;--card:#fff;--ink:#1f2328;--dim:#59636e;--line:#d9dfe5;--good:#0b7a43;--good-back:#dcf5e6;--bad:#b3261e;--bad-back:#fde8e6;--none-back:#eaeef2;--warn:#7a5200;--warn-back:#fff4d6;--blue:#0a5fa8;--purple:#8a2f6b;--green:#0b6e52;--code:#f3f5f8}
@media screen and (prefers-color-scheme:dark){:root{--back:#0d1014;--card:#14181d;--ink:#e8edf2;--dim:#98a2ad;--line:#2a3138;--good:#5fd896;--good-back:#12351f;--bad:#ff9a90;--bad-back:#3d1714;--none-back:#232a31;--warn:#f0c566;--warn-back:#33280e;--blue:#6cbcff;--purple:#e79bcd;--green:#54d3aa;--code:#1b2127}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;overflow-wrap:anywhere}
main{max-width:1240px;margin:0 auto;padding:28px 20px 64px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px}h2{font-size:19px;margin:40px 0 12px}h3{font-size:16px;margin:0;display:inline}h4{font-size:14px;margin:0}
p{margin:0 0 8px}.dim,.note{color:var(--dim)}.note{font-size:13px;margin:4px 0}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12.5px}
pre{background:var(--code);border-radius:6px;padding:8px 10px;margin:6px 0;overflow-x:auto;white-space:pre-wrap}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px}main>.card+.card{margin-top:14px}
.chart svg{display:block;width:100%;height:auto}
.curve{overflow-x:auto}.curve svg{min-width:660px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,370px),1fr));gap:14px}
.charts .card{padding:12px}
.headline{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,250px),1fr));gap:14px;margin:18px 0}
.headline .name{color:var(--dim);font-size:13px}
.headline .change{font-size:23px;font-weight:700;line-height:1.25;letter-spacing:-.01em;font-variant-numeric:tabular-nums;white-space:nowrap}
.headline .arrow{color:var(--dim);font-weight:400}
.headline .ci{font-size:13px;color:var(--dim);font-variant-numeric:tabular-nums}
.bar{position:relative;height:22px;margin:10px 0 6px;background:var(--none-back);border-radius:4px;overflow:hidden}
.bar i{position:absolute;top:0;bottom:0;opacity:.38}.bar b{position:absolute;top:0;bottom:0;width:3px;margin-left:-1px;border-radius:2px}
.bar .was{background:var(--dim)}.bar .is{background:var(--good)}.bar .fell{background:var(--bad)}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:3px 10px 3px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--dim)}td.number{text-align:right}
.scroll{overflow-x:auto;overflow-wrap:normal;margin:6px 0}.scroll th,.evaluation td{white-space:nowrap}
.card>.scroll>table,.pair table{width:100%}th.number{text-align:right}.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:0 36px}
.said{font-size:20px;line-height:1.35;margin:14px 0 0}.said b{font-weight:700}
.gold{background:var(--good-back);border-radius:6px;padding:6px 10px;margin:6px 0}.gold b{font-weight:600}.gold+.gold{background:var(--none-back)}.gold code b{color:var(--blue)}
.rest summary{cursor:pointer;margin-top:8px;color:var(--dim)}
.config td:first-child{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12.5px;white-space:nowrap}
.config.columns{columns:2 340px;column-gap:36px}.config.columns table,table.config{width:100%}
.tag{display:inline-block;padding:0 8px;border-radius:10px;font-size:12.5px;font-weight:600;background:var(--none-back);color:var(--dim);white-space:nowrap}
.better,.good{color:var(--good)}.worse,.bad{color:var(--bad)}
.tag.better{background:var(--good-back)}.tag.worse{background:var(--bad-back)}
.warning{border-left:4px solid var(--warn);background:var(--warn-back);border-radius:6px;padding:8px 12px;margin:0 0 8px}
.warning b{color:var(--warn)}
details.question{margin:0 0 14px}
details.question>summary{cursor:pointer;list-style-position:outside;margin-left:16px}
.marks{margin-left:8px;white-space:nowrap}.marks .tag{margin-right:4px}
.marks .good{background:var(--good-back)}.marks .bad{background:var(--bad-back)}
.players{display:grid;grid-template-columns:repeat(var(--players),minmax(0,1fr));gap:14px;margin-top:12px;align-items:start}
@media (max-width:820px){.players{grid-template-columns:minmax(0,1fr)}}
.episode{border:1px solid var(--line);border-radius:8px;overflow:hidden;min-width:0}
.episode>header{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline;justify-content:space-between;padding:8px 12px;background:var(--code);border-bottom:1px solid var(--line)}
.verdict{font-size:13px;font-weight:600}.verdict.none{color:var(--dim)}
.episode>.dim{padding:10px 12px;margin:0}
.turns{list-style:none;margin:0;padding:0;counter-reset:turn}
.turn{padding:9px 12px 7px;border-bottom:1px solid var(--line)}.turn:last-child{border-bottom:0}
.action code b{color:var(--blue)}.action .s,.gold .s{color:var(--green)}.action .n,.gold .n{color:var(--purple)}.action .q{color:var(--ink);font-style:italic}
.type{font-size:11px;font-weight:700;letter-spacing:.04em;color:var(--dim)}.type.answer{color:var(--purple)}
.error{color:var(--bad);font-size:13px;margin:4px 0}
.turn table{font-size:12px}.turn td,.turn th{padding:1px 12px 1px 0}
.reward{color:var(--dim);font-size:12px;margin:4px 0 0}
footer{margin-top:40px;color:var(--dim);font-size:13px}
@media print{body{background:#fff}main{max-width:none;padding:0}.scroll{overflow:visible}.scroll th,.evaluation td,.evaluation .tag{white-space:normal}.curve svg{min-width:0}.card,.episode,.turn{break-inside:avoid}h2{break-after:avoid}}
`;
