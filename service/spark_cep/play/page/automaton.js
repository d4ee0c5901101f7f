// The automaton, drawn by Mermaid, and the partial matches on it: they move from state to state.
import { mermaid } from "nicegui-mermaid";

const SVG = "http://www.w3.org/2000/svg";
const MOST_SHOWN = 8;
const WIDE = 24;
const SMALLEST = 0.62;
let drawings = 0;

function made(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}

export default {
  template: '<div class="play-automaton"></div>',
  props: { drawing: String, tokens: Array, dark: Boolean },
  mounted() {
    this.shown = new Map();
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(this.$el);
    this.draw();
  },
  unmounted() {
    this.resized.disconnect();
  },
  watch: {
    drawing() {
      this.draw();
    },
    dark() {
      this.draw();
    },
    tokens() {
      this.place();
    },
  },
  methods: {
    async draw() {
      const number = ++drawings;
      this.shown = new Map();
      this.states = new Map();
      if (!this.drawing) {
        this.$el.textContent = "";
        return;
      }
      const colours = this.dark
        ? { primaryColor: "#22303c", primaryBorderColor: "#5b7083", primaryTextColor: "#e4e8ec", lineColor: "#7d92a5", clusterBkg: "transparent", clusterBorder: "transparent", edgeLabelBackground: "#151b21" }
        : { primaryColor: "#f2f6f9", primaryBorderColor: "#8ba0b2", primaryTextColor: "#1d2a35", lineColor: "#6b7f90", clusterBkg: "transparent", clusterBorder: "transparent", edgeLabelBackground: "#ffffff" };
      mermaid.initialize({
        startOnLoad: false,
        securityLevel: "strict",
        theme: "base",
        themeVariables: { ...colours, fontFamily: "inherit", fontSize: "13px" },
        flowchart: { htmlLabels: true, nodeSpacing: 34, rankSpacing: 24, padding: 8, curve: "basis" },
      });
      const { svg } = await mermaid.render(`play_automaton_${number}`, this.drawing);
      if (number !== drawings) return; // another has been asked for
      this.$el.innerHTML = svg;
      this.root = this.$el.querySelector("svg");
      this.fit();
      for (const node of this.root.querySelectorAll("g.node")) {
        const found = node.id.match(/r0s(\d+)-\d+$/);
        if (found) this.states.set(Number(found[1]), node);
      }
      this.layer = made("g", { class: "play-tokens" }, this.root);
      this.place();
    },
    // As large as there is room; smaller than can be read it is not, but scrolled.
    fit() {
      if (!this.root) return;
      const { width, height } = this.root.viewBox.baseVal;
      const room = Math.min((this.$el.clientWidth - 28) / width, (this.$el.clientHeight - 28) / height, 1);
      const scale = Math.max(room, SMALLEST);
      this.root.style.width = `${Math.floor(width * scale)}px`;
      this.root.style.height = `${Math.floor(height * scale)}px`;
    },
    // The middle of a state's upper edge, in the drawing's own units.
    top(state) {
      const node = this.states.get(state);
      if (!node) return null;
      const box = node.getBoundingClientRect();
      const inverse = this.root.getScreenCTM().inverse();
      const point = new DOMPoint(box.left + box.width / 2, box.top).matrixTransform(inverse);
      return [point.x, point.y];
    },
    place() {
      if (!this.layer) return;
      const byState = new Map();
      for (const token of this.tokens ?? []) {
        for (const state of token.places) {
          if (!byState.has(state)) byState.set(state, []);
          byState.get(state).push(token);
        }
      }
      for (const [state, node] of this.states) {
        const alive = (byState.get(state) ?? []).some((each) => each.fate === "alive" || each.fate === "held back");
        const matched = (byState.get(state) ?? []).some((each) => each.fate === "matched");
        node.classList.toggle("play-occupied", alive);
        node.classList.toggle("play-reached", matched);
      }
      const kept = new Set();
      for (const [state, tokens] of byState) {
        const top = this.top(state);
        if (!top) continue;
        const shown = tokens.slice(0, MOST_SHOWN);
        shown.forEach((token, place) => {
          const name = `${token.number} ${token.places.indexOf(state)}`;
          const x = top[0] + (place - (shown.length - 1) / 2) * WIDE;
          kept.add(name);
          this.put(name, token, x, top[1], tokens.length - shown.length, place === shown.length - 1);
        });
      }
      this.bringIntoView();
      for (const [name, element] of this.shown) {
        if (kept.has(name)) continue;
        element.remove();
        this.shown.delete(name);
      }
    },
    // The panel alone is scrolled, to the state that a partial match has moved to.
    bringIntoView() {
      const moved = (this.tokens ?? []).find((each) => each.moved) ?? this.tokens?.[0];
      const node = this.states.get(moved?.places[0]);
      if (!node) return;
      const here = node.getBoundingClientRect();
      const panel = this.$el.getBoundingClientRect();
      if (here.left < panel.left || here.right > panel.right) {
        this.$el.scrollLeft += here.left + here.width / 2 - panel.left - panel.width / 2;
      }
      if (here.top - 12 < panel.top || here.bottom > panel.bottom) {
        this.$el.scrollTop += here.top + here.height / 2 - panel.top - panel.height / 2;
      }
    },
    put(name, token, x, y, more, last) {
      let element = this.shown.get(name);
      if (!element) {
        // A new one comes from where the one stands that it has parted from, or from the start.
        const from = this.shown.get(`${token.parent} 0`)?.dataset ?? this.beginning();
        element = made("g", { class: "play-token" }, this.layer);
        made("circle", { r: 11 }, element);
        made("text", { "text-anchor": "middle", dy: "0.35em" }, element);
        made("title", {}, element);
        this.move(element, from.x ?? x, from.y ?? y);
        element.getBoundingClientRect(); // so that the next place is moved to
        this.shown.set(name, element);
      }
      element.setAttribute("class", `play-token play-${token.fate.replace(" ", "-")}${token.moved ? " play-moved" : ""}`);
      element.dataset.number = token.number;
      element.querySelector("text").textContent = last && more > 0 ? `+${more + 1}` : token.number;
      element.querySelector("title").textContent = `${token.number}: ${token.text}`;
      this.move(element, x, y);
    },
    move(element, x, y) {
      element.dataset.x = x;
      element.dataset.y = y;
      element.style.transform = `translate(${x}px, ${y}px)`;
    },
    beginning() {
      const top = this.top(0);
      return top ? { x: top[0], y: top[1] } : {};
    },
  },
};
