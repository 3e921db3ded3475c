'use strict';
// The page of `pantala explain`: the kernels of a step as it was given and as it was chosen. All
// texts are set as text, never as markup: they come from users.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const kWidth = 206, kHeight = 50, kRow = 16, kGapX = 26, kGapY = 30, kColumnGap = 90;
  const kMostInRow = 4, kMostNodes = 60;
  const isMeasured = data.given_ms !== undefined;
  const state = {step: 0, view: 'chosen', selected: null, query: '', expanded: new Set()};

  // --- small things
  const byId = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties))
      if (name === 'class') element.className = value;
      else if (name === 'onclick') element.addEventListener('click', value);
      else element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const draw = (tag, properties = {}, text) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const pen = document.createElement('canvas').getContext('2d');
  const family = getComputedStyle(document.body).fontFamily;
  // As much of a text as has room, in a font such as '600 14px'.
  const cut = (text, room, font = '12px') => {
    pen.font = `${font} ${family}`;
    if (pen.measureText(text).width <= room) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pen.measureText(text.slice(0, middle) + '\u2026').width <= room) low = middle;
      else high = middle - 1;
    }
    return text.slice(0, low) + '\u2026';
  };
  const time = (us) => (us >= 1e4 ? (us / 1e3).toFixed(1) + ' ms'
                        : us >= 1e3 ? (us / 1e3).toFixed(2) + ' ms' : us.toFixed(1) + ' \u00b5s');
  const timeOf = (kernel) => (isMeasured ? kernel.measured_us ?? 0 : kernel.predicted_us);
  const titleOf = (kernel) => kernel.layers || kernel.name;
  const stepNow = () => data.steps[state.step];
  const percent = (before, after) => {
    if (!(before > 0)) return '';
    const change = 100 * (after / before - 1);
    return (change >= 0 ? '+' : '') + change.toFixed(1) + ' %';
  };

  // --- colours: from pale to red by the square root of the part of the longest time
  const kStops = [[250, 250, 245], [254, 224, 139], [244, 109, 67]];
  const colour = (part) => {
    const at = Math.sqrt(Math.min(1, Math.max(0, part))) * (kStops.length - 1);
    const low = Math.min(kStops.length - 2, Math.floor(at));
    const mixed = kStops[low].map((c, k) => Math.round(c + (kStops[low + 1][k] - c) * (at - low)));
    return `rgb(${mixed.join(',')})`;
  };
  const longest = (step) =>
    Math.max(1e-9, ...step.given.map(timeOf), ...step.chosen.map(timeOf));

  // --- layout: rows by depth, ordered by their neighbours, set in columns like a newspaper
  const readersOf = (kernels) => {
    const readers = kernels.map(() => []);
    kernels.forEach((kernel, k) => kernel.reads.forEach((r) => readers[r].push(k)));
    return readers;
  };
  const depths = (kernels, readers) => {
    const depth = kernels.map(() => 0);
    kernels.forEach((kernel, k) => {  // they stand in an order in which they can run
      for (const r of kernel.reads) if (r < k) depth[k] = Math.max(depth[k], depth[r] + 1);
    });
    // What reads no other kernel stands right before its first reader.
    kernels.forEach((kernel, k) => {
      if (kernel.reads.length === 0 && readers[k].length > 0)
        depth[k] = Math.max(0, Math.min(...readers[k].map((r) => depth[r])) - 1);
    });
    return depth;
  };
  const orderRows = (rows, kernels, readers) => {
    const place = kernels.map(() => 0);
    const note = (row) => row.forEach((k, at) => (place[k] = at - (row.length - 1) / 2));
    const sort = (row, neighbours) => {
      const centre = (k) => {
        const all = neighbours(k);
        return all.length ? all.reduce((sum, n) => sum + place[n], 0) / all.length : place[k];
      };
      const keys = new Map(row.map((k) => [k, centre(k)]));
      row.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
      note(row);
    };
    rows.forEach(note);
    for (let sweep = 0; sweep < 4; ++sweep) {
      rows.forEach((row) => sort(row, (k) => kernels[k].reads));
      [...rows].reverse().forEach((row) => sort(row, (k) => readers[k]));
    }
  };
  const layout = (kernels, heightOf, aspect) => {
    const readers = readersOf(kernels), depth = depths(kernels, readers);
    const layers = [];
    kernels.forEach((_, k) => (layers[depth[k]] ??= []).push(k));
    let rows = layers.filter((layer) => layer && layer.length);
    orderRows(rows, kernels, readers);
    rows = rows.flatMap((row) => {
      const parts = [];
      for (let at = 0; at < row.length; at += kMostInRow) parts.push(row.slice(at, at + kMostInRow));
      return parts;
    });
    const heights = rows.map((row) => Math.max(...row.map(heightOf)) + kGapY);
    const widths = rows.map((row) => row.length * (kWidth + kGapX));
    const columnsOf = (most) => {
      const columns = [[]];
      let height = 0;
      rows.forEach((_, r) => {
        if (height > 0 && height + heights[r] > most) columns.push([]), (height = 0);
        columns.at(-1).push(r);
        height += heights[r];
      });
      return columns;
    };
    const total = heights.reduce((a, b) => a + b, 0);
    const size = (columns) => ({
      width: columns.reduce((sum, c) => sum + Math.max(...c.map((r) => widths[r])) + kColumnGap, 0),
      height: Math.max(...columns.map((c) => c.reduce((sum, r) => sum + heights[r], 0))),
    });
    let columns = null, best = Infinity;
    for (let count = 1; count <= 16; ++count) {
      const some = columnsOf(total / count + kHeight + kGapY), {width, height} = size(some);
      const need = Math.max(width / aspect, height);
      if (need < best) (best = need), (columns = some);
    }
    const boxes = [];
    let left = 0;
    columns.forEach((column) => {
      const wide = Math.max(...column.map((r) => widths[r]));
      let top = 0;
      column.forEach((r) => {
        let x = left + (wide - widths[r]) / 2 + kGapX / 2;
        for (const k of rows[r]) {
          boxes[k] = {x, y: top, width: kWidth, height: heightOf(k), row: r};
          x += kWidth + kGapX;
        }
        top += heights[r];
      });
      left += wide + kColumnGap;
    });
    return {boxes, readers, ...size(columns)};
  };

  // --- a pane: one graph, with zoom and pan
  class Pane {
    constructor(which) {
      this.which = which;
      this.element = byId('pane-' + which);
      this.svg = this.element.querySelector('svg');
      this.world = draw('g');
      this.svg.append(this.world);
      this.at = {x: 0, y: 0, scale: 1};
      this.isFitted = true;  // a window of another size is filled again
      this.listen();
    }
    get kernels() { return stepNow()[this.which]; }
    keyOf(k) { return `${state.step}/${this.which}/${k}`; }
    isExpanded(k) { return state.expanded.has(this.keyOf(k)); }
    heightOf(k) {
      if (!this.isExpanded(k)) return kHeight;
      const count = this.kernels[k].nodes.length;
      return kHeight + 8 + kRow * (Math.min(count, kMostNodes) + (count > kMostNodes ? 1 : 0));
    }
    listen() {
      let drag = null;
      this.svg.addEventListener('wheel', (event) => {
        event.preventDefault();
        const box = this.svg.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
      }, {passive: false});
      this.svg.addEventListener('pointerdown', (event) => {
        drag = {x: event.clientX - this.at.x, y: event.clientY - this.at.y};
      });
      window.addEventListener('pointermove', (event) => {
        if (!drag) return;
        this.at.x = event.clientX - drag.x;
        this.at.y = event.clientY - drag.y;
        this.isFitted = false;
        this.move();
      });
      window.addEventListener('pointerup', () => (drag = null));
    }
    zoom(factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
      const scale = Math.min(4, Math.max(0.02, this.at.scale * factor));
      this.at.x = x - (x - this.at.x) * (scale / this.at.scale);
      this.at.y = y - (y - this.at.y) * (scale / this.at.scale);
      this.at.scale = scale;
      this.isFitted = false;
      this.move();
    }
    move() {
      const {x, y, scale} = this.at;
      this.world.setAttribute('transform', `translate(${x} ${y}) scale(${scale})`);
    }
    fit() {
      const wide = this.svg.clientWidth, high = this.svg.clientHeight, margin = 34;
      const {width, height} = this.plan;
      const scale = Math.min(1.4, (wide - 20) / width, (high - margin - 10) / height);
      this.at = {x: (wide - width * scale) / 2, y: margin, scale};
      this.isFitted = true;
      this.move();
    }
    centre(k) {
      const box = this.plan.boxes[k];
      const scale = Math.max(0.8, this.at.scale);
      this.at = {x: this.svg.clientWidth / 2 - (box.x + box.width / 2) * scale,
                 y: this.svg.clientHeight / 2 - (box.y + box.height / 2) * scale, scale};
      this.isFitted = false;
      this.move();
    }
    draw() {
      const wide = Math.max(200, this.svg.clientWidth), high = Math.max(200, this.svg.clientHeight);
      this.plan = layout(this.kernels, (k) => this.heightOf(k), wide / high);
      this.world.replaceChildren();
      this.edges = [];
      this.groups = [];
      this.kernels.forEach((kernel, k) => kernel.reads.forEach((r) => this.drawEdge(r, k)));
      const most = longest(stepNow());
      this.kernels.forEach((kernel, k) => this.drawKernel(kernel, k, timeOf(kernel) / most));
    }
    drawEdge(from, to) {
      const a = this.plan.boxes[from], b = this.plan.boxes[to];
      const x1 = a.x + a.width / 2, y1 = a.y + a.height, x2 = b.x + b.width / 2, y2 = b.y;
      const bend = Math.min(60, 14 + Math.abs(y2 - y1) / 3);
      const isFar = Math.abs(a.row - b.row) > 2;
      const path = draw('path', {
        class: isFar ? 'edge far' : 'edge',
        d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`,
      });
      this.world.append(path);
      this.edges.push({from, to, path});
    }
    drawKernel(kernel, k, part) {
      const box = this.plan.boxes[k];
      const group = draw('g', {class: 'kernel', transform: `translate(${box.x} ${box.y})`});
      group.dataset.kernel = k;
      group.classList.toggle('rewritten', kernel.rules.length > 0);
      group.append(draw('title', {}, `${k}: ${titleOf(kernel)}\n${kernel.ops}\n${time(timeOf(kernel))}`));
      group.append(draw('rect', {class: 'box', width: box.width, height: box.height, rx: 5, fill: colour(part)}));
      group.append(draw('text', {class: 'name', x: 8, y: 19}, cut(`${k} ${titleOf(kernel)}`, box.width - 36, '600 14px')));
      group.append(draw('text', {x: 8, y: 38}, cut(`${time(timeOf(kernel))}  ${kernel.ops}`, box.width - 16)));
      const expand = draw('g', {class: 'expand', transform: `translate(${box.width - 22} 5)`});
      expand.append(draw('rect', {width: 17, height: 17, rx: 3}));
      expand.append(draw('text', {x: 8.5, y: 13}, this.isExpanded(k) ? '\u2212' : '+'));
      expand.addEventListener('click', (event) => {
        event.stopPropagation();
        this.toggle(k);
      });
      group.append(expand);
      if (this.isExpanded(k)) this.drawNodes(group, kernel);
      group.addEventListener('click', () => select(this.which, k));
      this.world.append(group);
      this.groups[k] = group;
    }
    drawNodes(group, kernel) {
      kernel.nodes.slice(0, kMostNodes).forEach((node, n) => {
        const isNew = (node.rewrites ?? []).length > 0;
        group.append(draw('text', {class: isNew ? 'node rewritten' : 'node', x: 14, y: kHeight + 10 + n * kRow},
                          cut(`${node.op} ${node.type}`, kWidth - 22)));
      });
      if (kernel.nodes.length > kMostNodes)
        group.append(draw('text', {x: 14, y: kHeight + 10 + kMostNodes * kRow},
                          `and ${kernel.nodes.length - kMostNodes} more`));
    }
    toggle(k) {
      const key = this.keyOf(k);
      if (!state.expanded.delete(key)) state.expanded.add(key);
      this.draw();
      this.centre(k);
      mark();
    }
  }

  // --- what is selected and searched for
  const text = (kernel) => [kernel.name, kernel.layers, kernel.ops, ...kernel.launches, ...kernel.codes,
                            ...kernel.places, ...kernel.rules].join('\n').toLowerCase();
  const matches = (kernel) => text(kernel).includes(state.query);
  const mark = () => {
    for (const pane of panes) {
      if (pane.element.hidden) continue;
      const chosen = state.selected && state.selected.which === pane.which ? state.selected.k : null;
      pane.groups.forEach((group, k) => {
        group.classList.toggle('selected', k === chosen);
        group.classList.toggle('faded', state.query !== '' && !matches(pane.kernels[k]));
      });
      for (const {from, to, path} of pane.edges) {
        path.classList.toggle('read', to === chosen);
        path.classList.toggle('reader', from === chosen);
      }
    }
  };
  const select = (which, k) => {
    state.selected = {which, k};
    mark();
    showKernel(which, k);
  };
  let foundAt = -1;
  const search = (query) => {
    state.query = query.trim().toLowerCase();
    foundAt = -1;
    const pane = panes.find((one) => !one.element.hidden && one.which === 'chosen') ??
                 panes.find((one) => !one.element.hidden);
    const found = state.query ? pane.kernels.flatMap((kernel, k) => (matches(kernel) ? [k] : [])) : [];
    byId('found').textContent = state.query ? `${found.length} of ${pane.kernels.length}` : '';
    mark();
    return {pane, found};
  };
  const goToNext = () => {
    const at = foundAt, {pane, found} = search(byId('search').value);
    if (!found.length) return;
    foundAt = (at + 1) % found.length;
    pane.centre(found[foundAt]);
    select(pane.which, found[foundAt]);
  };

  // --- the side: a kernel, or the whole
  const table = (titles, rows) => {
    const isNumber = (c) => titles[c].startsWith('#');
    const cell = (tag, c, value) =>
      make(tag, isNumber(c) ? {class: 'number'} : {}, value instanceof Node ? value : String(value));
    return make('table', {},
                make('tr', {}, ...titles.map((title, c) => cell('th', c, title.replace(/^#/, '')))),
                ...rows.map((row) => make('tr', row.chosen ? {class: 'chosen'} : {},
                                          ...row.cells.map((value, c) => cell('td', c, value)))));
  };
  const rows = (list) => list.map((cells) => ({cells}));
  const linkTo = (which, k) => make('button', {
    class: 'link',
    onclick: () => {
      panes.find((pane) => pane.which === which).centre(k);
      select(which, k);
    },
  }, `${k} ${titleOf(stepNow()[which][k])}`);
  const nodeLine = (node) => {
    const line = make('div', {class: 'node'}, make('b', {}, node.op), ` ${node.type} `);
    if (node.label) line.append(`\u201c${node.label}\u201d `);
    if (node.place) line.append(make('span', {class: 'place'}, node.place));
    for (const one of node.rewrites ?? [])
      line.append(make('div', {class: 'rewrite'}, `by ${one.rule} from ${one.from}`));
    return line;
  };
  const showKernel = (which, k) => {
    const kernel = stepNow()[which][k];
    const pane = panes.find((one) => one.which === which);
    const facts = [['estimated', time(kernel.predicted_us)]];
    if (kernel.measured_us !== undefined) facts.push(['measured', time(kernel.measured_us)]);
    facts.push(['work', (kernel.flops / 1e6).toFixed(3) + ' Mflop'],
               ['moves', (kernel.bytes / 1e6).toFixed(3) + ' MB'],
               ['ops', kernel.ops], ['launches', kernel.launches.join(', ')],
               ['code', kernel.codes.join(', ')],
               ['rules', kernel.rules.join(', ') || 'none: as it was given'],
               ['places', kernel.places.join(', ') || 'not known']);
    const list = (title, links) => (links.length ? [make('h3', {}, title), make('p', {}, ...links)] : []);
    byId('details').replaceChildren(
        make('button', {id: 'back', onclick: showSummary}, 'summary'),
        make('h2', {id: 'kernel-title'}, `${k}: ${titleOf(kernel)} (${which})`),
        table(['', ''], rows(facts)),
        ...list('reads', kernel.reads.map((r) => linkTo(which, r))),
        ...list('is read by', pane.plan.readers[k].map((r) => linkTo(which, r))),
        make('h3', {}, kernel.nodes.length === 1 ? 'computes a node' : `computes ${kernel.nodes.length} nodes`),
        ...kernel.nodes.map(nodeLine),
        ...(kernel.leaves.length ? [make('h3', {}, 'from'), ...kernel.leaves.map(nodeLine)] : []));
  };
  const showSummary = () => {
    state.selected = null;
    mark();
    const step = stepNow(), given = step.candidates[0], chosen = step.candidates.find((one) => one.chosen);
    const mega = (value) => (value / 1e6).toFixed(1);
    const compare = (name, show, a, b) => [name, show(a), show(b), percent(a, b)];
    const summary = [
      compare('nodes', String, given.nodes, chosen.nodes),
      compare('launches', String, given.launches, chosen.launches),
      compare('Mflop', mega, given.flops, chosen.flops),
      compare('MB moved', mega, given.bytes, chosen.bytes),
      compare('MB alive', mega, given.peak_bytes, chosen.peak_bytes),
      compare('estimated', time, given.predicted_us, chosen.predicted_us),
    ];
    if (isMeasured) summary.push(compare('measured', (ms) => time(1e3 * ms), data.given_ms, data.chosen_ms));
    const ruleLink = (name) => make('button', {
      class: 'link',
      onclick: () => {
        byId('search').value = name;
        goToNext();
      },
    }, name);
    const phases = [...data.stages, ...step.stages].flatMap((stage) => [
      [stage.name, stage.milliseconds.toFixed(1)],
      ...(stage.name === 'saturate' ? step.search_phases.map((one) =>
        ['\u2003' + (one.name === 'saturate' ? 'apply rules' : one.name), one.milliseconds.toFixed(1)]) : []),
    ]);
    const kinds = (what, list) => list.map((one) =>
      [what, `${one.count} x ${one.values.replaceAll(',', ',\u200b')}`, mega(one.bytes)]);
    const decided = [...kinds('stored for all who read it', step.stored),
                     ...kinds('computed again, not kept', step.recomputed),
                     ...step.by_planes.map((kind) => ['images by planes', kind, ''])];
    byId('details').replaceChildren(
        make('h2', {}, 'given and chosen'), table(['', '#given', '#chosen', '#'], rows(summary)),
        make('h3', {}, 'rules that fit'),
        step.rules.length ? table(['rule', '#places', '#nodes chosen', '#estimate without'],
              rows(step.rules.map((rule) => [ruleLink(rule.name), rule.matches, rule.reached,
                                             percent(chosen.predicted_us, rule.predicted_us_without)])))
                          : make('p', {}, step.egraph_nodes ? 'none' : 'not counted without an e-graph'),
        make('h3', {}, 'candidates'),
        table(['', '#estimated', 'why'], step.candidates.map((one) => (
          {chosen: one.chosen, cells: [one.name, time(one.predicted_us), one.verdict]}))),
        make('h3', {}, 'tried on the way to the best applications'),
        step.trials.length ? table(['', 'for values', '#estimated', ''], rows(step.trials.map((one) => [
          `${one.with ? 'with' : 'without'} ${one.rule}`, one.type.replaceAll(',', ',\u200b'),
          time(one.predicted_us), one.kept ? 'kept' : 'rejected: no better']))) : make('p', {}, 'nothing'),
        ...(decided.length ? [make('h3', {}, 'memory and layouts'),
                              table(['', 'values', '#MB'], rows(decided))] : []),
        make('h3', {}, 'time to compile'), table(['', '#ms'], rows(phases)),
        make('p', {}, step.egraph_nodes ? `e-graph: ${step.egraph_nodes} nodes, ${step.egraph_classes} classes, ` +
                                          `${step.egraph_rounds} rounds, stopped: ${step.stop_reason}` : ''));
  };

  // --- the controls
  const panes = [new Pane('given'), new Pane('chosen')];
  const fitAll = () => panes.forEach((pane) => pane.element.hidden || pane.fit());
  const drawAll = () => {
    panes.forEach((pane) => pane.element.hidden || pane.draw());
    fitAll();
    byId('longest').textContent = time(longest(stepNow()));
    search(byId('search').value);
  };
  const show = (view) => {
    state.view = view;
    panes.forEach((pane) => (pane.element.hidden = view !== 'both' && view !== pane.which));
    for (const one of ['given', 'chosen', 'both'])
      byId('view-' + one).setAttribute('aria-pressed', String(one === view));
    drawAll();
  };
  for (const view of ['given', 'chosen', 'both'])
    byId('view-' + view).addEventListener('click', () => (show(view), state.selected ? mark() : showSummary()));
  byId('fit').addEventListener('click', fitAll);
  byId('zoom-in').addEventListener('click', () => panes.forEach((pane) => pane.element.hidden || pane.zoom(1.4)));
  byId('zoom-out').addEventListener('click', () => panes.forEach((pane) => pane.element.hidden || pane.zoom(1 / 1.4)));
  byId('search').addEventListener('input', (event) => search(event.target.value));
  byId('search').addEventListener('keydown', (event) => event.key === 'Enter' && goToNext());
  const choice = byId('step');
  data.steps.forEach((step, k) => choice.append(make('option', {value: k}, step.role)));
  choice.hidden = data.steps.length < 2;
  choice.addEventListener('change', () => {
    state.step = Number(choice.value);
    drawAll();
    showSummary();
  });
  byId('kind').textContent = isMeasured ? 'measured' : 'estimated';
  byId('legend').style.background =
    `linear-gradient(to right, ${[0, 0.1, 0.25, 0.5, 0.75, 1].map((at) => `${colour(at)} ${100 * at}%`).join(', ')})`;
  window.addEventListener('resize', () => {
    const open = panes.filter((pane) => !pane.element.hidden);
    if (open.every((pane) => pane.isFitted)) drawAll();
  });
  show('chosen');
  showSummary();
})();
