// The text of the nearest point of a map, beside the pointer or the finger.
() => {
  const tip = document.createElement("div");
  tip.className = "ig-tip";
  tip.hidden = true;
  document.body.append(tip);
  const reach = 24;
  let lit = [];
  const clear = () => {
    tip.hidden = true;
    lit.forEach((point) => point.classList.remove("ig-on"));
    lit = [];
  };
  const nearest = (map, event) => {
    const box = map.getBoundingClientRect();
    const scale = box.width / map.viewBox.baseVal.width;
    let best = null;
    let least = reach;
    for (const point of map.querySelectorAll("circle")) {
      const x = box.left + point.cx.baseVal.value * scale - event.clientX;
      const y = box.top + point.cy.baseVal.value * scale - event.clientY;
      const distance = Math.hypot(x, y);
      if (distance < least) [best, least] = [point, distance];
    }
    return best;
  };
  const show = (event) => {
    const map = event.target.closest && event.target.closest("svg.ig-map");
    const point = map && nearest(map, event);
    if (!point) return clear();
    if (lit[0] === point) return undefined;
    clear();
    const { pair } = point.dataset;
    const others = pair ? map.querySelectorAll(`circle[data-pair="${Number(pair)}"]`) : [];
    lit = [point, ...[...others].filter((other) => other !== point)];
    tip.replaceChildren();
    for (const one of lit) {
      one.classList.add("ig-on");
      const line = document.createElement("p");
      const code = document.createElement("b");
      const text = document.createElement("bdi");
      code.textContent = one.dataset.language;
      text.textContent = one.dataset.text;
      text.dir = "auto";
      line.append(code, " ", text);
      tip.append(line);
    }
    tip.hidden = false;
    const left = Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 16;
    const fits = below + tip.offsetHeight < window.innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${fits ? below : Math.max(8, event.clientY - tip.offsetHeight - 12)}px`;
    return undefined;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", clear, true);
}
