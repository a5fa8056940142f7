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
  const choices = add(place, "p"), svg = place.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  const words = add(place, "p", "Point at a second to read its rates.");
  svg.setAttribute("viewBox", "0 0 900 260");
  const draw = (points, colour, dashes) => {
    const line = svg.appendChild(document.createElementNS(svg.namespaceURI, "polyline"));
    const looks = { points, fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": dashes };
    Object.entries(looks).forEach(pair => line.setAttribute(...pair));
    return line;
  };
  lines.forEach((line, number) => {
    const colour = ["#2166ac", "#b2182b", "#1b7837", "#762a83"][number >> 1 & 3];
    const points = seconds.map((second, at) => `${900 * (at + 0.5) / seconds.length},${255 - 250 * line.of(second) / most}`);
    const drawn = draw(points.join(" "), colour, line.dashes), label = add(choices, "label");
    const box = Object.assign(add(label, "input"), { type: "checkbox", checked: true });
    label.append(` ${line.name} `);
    label.style.color = colour;
    box.onchange = () => { drawn.style.display = box.checked ? "" : "none"; };
  });
  const cursor = draw("", "#5a6673", "2 3");
  svg.onpointermove = event => {
    const box = svg.getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
    const at = Math.min(seconds.length - 1, Math.max(0, Math.floor(share * seconds.length))), x = 900 * (at + 0.5) / seconds.length;
    cursor.setAttribute("points", `${x},0 ${x},260`);
    words.textContent = `Second ${at + 1}, ${seconds[at].phase}: ${lines.map(line => `${line.name} ${rate(line.of(seconds[at]))}`).join(", ")}`;
  };
}
