'use strict';
// Clicks through a page of `pantala explain` as a reader would, and leaves what it found in the
// attribute data-click-through of the body: "passed" or what is wrong. Errors of the page's own
// script are collected in `pageErrors` before it runs (check_page.cmake).
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const step = data.steps[0];
  const wrong = [];
  const check = (holds, text) => holds || wrong.push(text);
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const click = (element) => element.dispatchEvent(new MouseEvent('click', {bubbles: true}));
  const pane = (which) => byId('pane-' + which);
  const kernels = (which) => all('.kernel', pane(which));
  const kernel = (which, k) => pane(which).querySelector(`.kernel[data-kernel="${k}"]`);
  const box = (group) => group.querySelector('rect.box').getBoundingClientRect();
  const details = () => byId('details').textContent;
  const scale = (which) => pane(which).querySelector('svg > g').getCTM().a;
  const press = (element, key) => element.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
  const type = (text) => {
    byId('search').value = text;
    byId('search').dispatchEvent(new Event('input', {bubbles: true}));
  };

  const checkBoxes = (which, when) => {
    const boxes = kernels(which).map(box);
    check(boxes.length === step[which].length, `${when}: ${boxes.length} kernels are drawn of ${step[which].length}`);
    let overlaps = 0;
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) ++overlaps;
    }));
    check(overlaps === 0, `${when}: ${overlaps} kernels overlap`);
    for (const group of kernels(which))
      for (const text of all('text', group))
        if (text.getBoundingClientRect().right > box(group).right + 1)
          check(false, `${when}: "${text.textContent}" is wider than its kernel`);
  };
  const checkFits = (which, when) => {
    const view = pane(which).querySelector('svg').getBoundingClientRect();
    check(kernels(which).map(box).every((one) => one.left >= view.left - 1 && one.right <= view.right + 1 &&
                                                 one.top >= view.top - 1 && one.bottom <= view.bottom + 1),
          `${when}: not everything is in view`);
  };

  const checkSummary = () => {
    check(!pane('chosen').hidden && pane('given').hidden, 'the chosen graph is not the one that is shown first');
    checkBoxes('chosen', 'at first');
    checkFits('chosen', 'at first');
    for (const one of step.candidates) check(details().includes(one.verdict), `the summary lacks "${one.verdict}"`);
    for (const one of [...step.stored, ...step.recomputed])
      check(details().includes(`${one.count} x `), `the summary lacks ${one.count} x ${one.values}`);
    for (const rule of step.rules) check(details().includes(rule.name), `the summary lacks the rule ${rule.name}`);
    const colours = new Set(kernels('chosen').map((group) => group.querySelector('rect.box').getAttribute('fill')));
    check(step.chosen.length < 3 || colours.size > 2, 'kernels are not coloured by time');
  };
  const checkViews = () => {
    click(byId('view-given'));
    check(!pane('given').hidden && pane('chosen').hidden, 'view given');
    checkBoxes('given', 'view given');
    checkFits('given', 'view given');
    click(byId('view-both'));
    check(!pane('given').hidden && !pane('chosen').hidden, 'view both');
    check(pane('given').getBoundingClientRect().right <= pane('chosen').getBoundingClientRect().left + 1,
          'view both: the graphs are not side by side');
    for (const which of ['given', 'chosen']) checkBoxes(which, 'view both'), checkFits(which, 'view both');
    click(byId('view-chosen'));
    check(byId('view-chosen').getAttribute('aria-pressed') === 'true', 'the button of the view is not pressed');
  };
  const checkZoom = () => {
    const svg = pane('chosen').querySelector('svg'), before = scale('chosen');
    const {left, top, width, height} = svg.getBoundingClientRect();
    const at = {clientX: left + width / 2, clientY: top + height / 2, bubbles: true, cancelable: true};
    svg.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: -400}));
    check(scale('chosen') > before * 1.2, 'the wheel does not zoom in');
    const first = box(kernel('chosen', 0)).left;
    svg.dispatchEvent(new PointerEvent('pointerdown', at));
    window.dispatchEvent(new PointerEvent('pointermove', {...at, clientX: at.clientX + 70}));
    window.dispatchEvent(new PointerEvent('pointerup', at));
    check(Math.abs(box(kernel('chosen', 0)).left - first - 70) < 2, 'the graph cannot be moved');
    click(byId('fit'));
    check(Math.abs(scale('chosen') - before) < 1e-6, 'fit does not undo zoom');
    click(byId('zoom-in'));
    check(scale('chosen') > before, 'the button + does not zoom in');
    click(byId('zoom-out'));
    click(byId('zoom-out'));
    check(scale('chosen') < before, 'the button - does not zoom out');
    click(byId('fit'));
    checkFits('chosen', 'fit');
  };
  const checkKernel = (k) => {
    const one = step.chosen[k];
    click(kernel('chosen', k));
    check(kernel('chosen', k).classList.contains('selected'), `kernel ${k} is not selected by a click`);
    check(all('.edge.read', pane('chosen')).length === one.reads.length, `kernel ${k}: not all that it reads is marked`);
    check(byId('kernel-title')?.textContent.startsWith(`${k}: `), `kernel ${k}: the details are of another`);
    for (const text of [one.ops, one.name, ...one.places, ...one.rules])
      check(details().includes(text), `kernel ${k}: the details lack "${text}"`);
    check(all('#details .node').length === one.nodes.length + one.leaves.length, `kernel ${k}: not all nodes are listed`);
    const chain = one.nodes.concat(one.leaves).flatMap((node) => node.rewrites ?? []);
    check(all('#details .rewrite').length === chain.length, `kernel ${k}: the chain of rewrites is not whole`);
    for (const {rule, from} of chain)
      check(details().includes(`by ${rule} from ${from}`), `kernel ${k}: the chain lacks ${rule}`);
    const link = byId('details').querySelector('.link');
    if (one.reads.length && link) {
      click(link);
      check(kernel('chosen', one.reads[0]).classList.contains('selected'), `kernel ${k}: a link to what it reads`);
    }
    click(byId('back'));
    check(!document.querySelector('.kernel.selected') && details().includes('candidates'), 'back to the summary');
  };
  const checkExpansion = (k) => {
    const height = () => box(kernel('chosen', k)).height / scale('chosen');
    const before = height();
    click(kernel('chosen', k).querySelector('.expand'));
    check(height() > before + 10, `kernel ${k} does not expand`);
    check(all('text.node', kernel('chosen', k)).length === Math.min(60, step.chosen[k].nodes.length), `kernel ${k}: its nodes`);
    checkBoxes('chosen', 'expanded');
    click(kernel('chosen', k).querySelector('.expand'));
    check(Math.abs(height() - before) < 0.5, `kernel ${k} does not collapse`);
    click(byId('fit'));
  };
  const checkSearch = () => {
    const words = step.chosen[0].ops.split(/[ ,]/)[0];
    type(words.toUpperCase());
    const faded = all('.kernel.faded', pane('chosen')).length, left = step.chosen.length - faded;
    check(left > 0 && byId('found').textContent === `${left} of ${step.chosen.length}`, 'the number that was found');
    press(byId('search'), 'Enter');
    check(all('.kernel.selected:not(.faded)', pane('chosen')).length === 1, 'Enter does not go to what was found');
    type('no kernel has such a name');
    check(all('.kernel.faded', pane('chosen')).length === step.chosen.length, 'what is not found is not faded');
    type('');
    check(all('.kernel.faded').length === 0, 'an empty search fades');
    click(byId('back'));
    const rule = byId('details').querySelector('.link');
    if (!rule) return;
    click(rule);
    const reached = step.chosen.some((one) => one.rules.includes(rule.textContent));
    check(!reached || details().includes(`by ${rule.textContent}`), 'a click on a rule does not go to a kernel that it made');
    type('');
    if (byId('back')) click(byId('back'));
    click(byId('fit'));
  };
  const checkSteps = () => {
    const choice = byId('step');
    check(choice.hidden === data.steps.length < 2, 'the choice of the step');
    if (choice.hidden) return;
    choice.value = '1';
    choice.dispatchEvent(new Event('change', {bubbles: true}));
    check(kernels('chosen').length === data.steps[1].chosen.length, 'another step is not shown');
    choice.value = '0';
    choice.dispatchEvent(new Event('change', {bubbles: true}));
  };
  // What a screenshot shall show: the dearest kernel that a rule made, or the dearest of all.
  const leaveSelected = () => {
    const cost = (k) => step.chosen[k].predicted_us + (step.chosen[k].rules.length ? 1e12 : 0);
    const k = step.chosen.reduce((best, _, at) => (cost(at) > cost(best) ? at : best), 0);
    click(kernel('chosen', k).querySelector('.expand'));
    click(kernel('chosen', k));
  };

  try {
    checkSummary();
    checkViews();
    checkZoom();
    step.chosen.forEach((_, k) => checkKernel(k));
    const most = step.chosen.reduce((best, one, k) => (one.nodes.length > step.chosen[best].nodes.length ? k : best), 0);
    checkExpansion(most);
    checkSearch();
    checkSteps();
    if (location.hash === '#both') click(byId('view-both'));
    else leaveSelected();
  } catch (error) {
    wrong.push(String(error.stack ?? error));
  }
  wrong.push(...pageErrors);
  document.body.dataset.clickThrough = wrong.length ? wrong.slice(0, 20).join(' | ') : 'passed';
})();
