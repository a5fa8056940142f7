// The seconds of each ramp, which stand in its element: choose lines, point at a second and read its rates.
for (const place of document.querySelectorAll("[data-ramp]")) {
  const seconds = Object.values(JSON.parse(place.dataset.ramp));
  const rate = value => `${(value / 1e6).toFixed(3)} Mpps`;
  const add = (to, name, text = "") => to.appendChild(Object.assign(document.createElement(name), { textContent: text }));
  const lines = Object.keys(seconds[0] ?? {}).filter(key => key !== "phase").flatMap(port => [
    { name: `port ${port} sends`, of: second => second[port].tx_pps, dashes: "4 4" },
    { name: `port ${port} receives`, of: second => second[port].rx_pps, dashes: "" },
  ]).filter(line => seconds.some(second => line.of(second) > 0));
  const most = Math.max(...seconds.flatMap(second => lines.map(line => line.of(second))));
  const draw = (to, name, looks, text = "") => {
    const shape = to.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
    Object.entries(looks).forEach(pair => shape.setAttribute(...pair));
    shape.textContent = text;
    return shape;
  };
  const line = (to, points, colour, dashes = "", width = 2) =>
    draw(to, "polyline", { points, fill: "none", stroke: colour, "stroke-width": width, "stroke-dasharray": dashes });
  const choices = add(place, "p"), svg = draw(place, "svg", { viewBox: "0 0 900 310", width: 900, "font-size": 13 });
  const words = add(place, "p", "Point at a second to read its rates.");
  const x = second => 80 + 810 * second / seconds.length, y = value => 255 - 245 * value / most;
  // marks of an axis: round numbers, some six of them
  const marks = end => {
    const power = 10 ** Math.floor(Math.log10(end / 5)), step = power * [1, 2, 5, 10].find(size => end / (size * power) <= 7);
    return Array.from({ length: Math.floor(end / step) + 1 }, (_, number) => +(number * step).toPrecision(6));
  };
  for (const mark of most > 0 ? marks(most / 1e6) : []) {
    line(svg, `80,${y(1e6 * mark)} 890,${y(1e6 * mark)}`, "#dde3e8", "", 1);
    draw(svg, "text", { x: 73, y: y(1e6 * mark) + 4.5, "text-anchor": "end" }, mark);
  }
  for (const mark of marks(seconds.length)) draw(svg, "text", { x: x(mark), y: 273, "text-anchor": "middle" }, mark);
  draw(svg, "text", { x: 485, y: 297, "text-anchor": "middle" }, "seconds of traffic (it pauses between the steps)");
  draw(svg, "text", { x: 18, y: 132, "text-anchor": "middle", transform: "rotate(-90 18 132)" }, "rate of each port [Mpps]");
  line(svg, "80,10 80,255 890,255", "#8a95a0", "", 1);
  lines.forEach((one, number) => {
    const colour = ["#2166ac", "#b2182b", "#1b7837", "#762a83"][number >> 1 & 3];
    const points = seconds.map((second, at) => `${x(at + 0.5)},${y(one.of(second))}`);
    const drawn = line(svg, points.join(" "), colour, one.dashes), label = add(choices, "label");
    const box = Object.assign(add(label, "input"), { type: "checkbox", checked: true });
    line(draw(label, "svg", { viewBox: "0 0 34 10", width: 34 }), "3,5 31,5", colour, one.dashes);
    label.append(` ${one.name} `);
    label.style.color = colour;
    box.onchange = () => { drawn.style.display = box.checked ? "" : "none"; };
  });
  const cursor = line(svg, "", "#5a6673", "2 3");
  svg.onpointermove = event => {
    const box = svg.getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
    const at = Math.min(seconds.length - 1, Math.max(0, Math.floor((900 * share - 80) / 810 * seconds.length)));
    cursor.setAttribute("points", `${x(at + 0.5)},10 ${x(at + 0.5)},255`);
    words.textContent = `Second ${at + 1}, ${seconds[at].phase}: ${lines.map(one => `${one.name} ${rate(one.of(seconds[at]))}`).join(", ")}`;
  };
}
