// Draws blocks of Mermaid, with the Mermaid that the site brings. A page without such a block loads nothing.
const blocks = [...document.querySelectorAll(".highlight-mermaid")];
const texts = blocks.map((block) => block.querySelector("pre").textContent);
const system = matchMedia("(prefers-color-scheme: dark)");

function draw() {
  const chosen = document.body.dataset.theme;
  const dark = chosen === "dark" || (chosen !== "light" && system.matches);
  mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
  blocks.forEach((block, number) => {
    const diagram = document.createElement("pre");
    diagram.className = "mermaid";
    diagram.textContent = texts[number];
    block.replaceChildren(diagram);
  });
  mermaid.run();
}

if (blocks.length) {
  const script = document.createElement("script");
  script.src = document.documentElement.dataset.content_root + "_static/mermaid.min.js";
  script.onload = () => {
    draw();
    new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
    system.addEventListener("change", draw);
  };
  document.head.append(script);
}
