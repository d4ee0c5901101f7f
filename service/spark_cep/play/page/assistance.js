// Diagnostics, completion and hover of the editor next to it. What is known comes from Python:
// positions are lines and characters (code points) from 0.
import * as CM from "nicegui-codemirror";

const setProblems = CM.StateEffect.define();

// Problems move with the text until they are found again.
const problemField = CM.StateField.define({
  create: () => CM.Decoration.none,
  update(marks, change) {
    marks = marks.map(change.changes);
    for (const effect of change.effects) {
      if (effect.is(setProblems)) marks = CM.Decoration.set(effect.value, true);
    }
    return marks;
  },
  provide: (field) => CM.EditorView.decorations.from(field),
});

function offset(doc, position) {
  const line = doc.line(Math.min(position[0] + 1, doc.lines));
  const units = [...line.text].slice(0, position[1]).join("").length;
  return line.from + units;
}

function position(doc, at) {
  const line = doc.lineAt(at);
  return [line.number - 1, [...line.text.slice(0, at - line.from)].length];
}

function marked(doc, problem) {
  let from = offset(doc, problem.start);
  let to = Math.max(offset(doc, problem.end), from);
  if (from === to) {
    const line = doc.lineAt(from);
    if (line.length === 0) return null;
    to = Math.min(from + 1, line.to);
    from = Math.min(from, to - 1);
  }
  return CM.Decoration.mark({ class: `play-${problem.severity}`, problem }).range(from, to);
}

export default {
  template: "<div hidden></div>",
  props: { editor: Number },
  async mounted() {
    this.waiting = new Map();
    this.asked = 0;
    await this.$nextTick();
    const component = getElement(this.editor);
    this.view = component.editor ?? (await component.editorPromise);
    const complete = (context) => this.complete(context);
    this.view.dispatch({
      effects: CM.StateEffect.appendConfig.of([
        problemField,
        CM.EditorState.languageData.of(() => [{ autocomplete: complete }]),
        CM.hoverTooltip((view, at) => this.hover(view, at)),
      ]),
    });
    if (this.problems) this.show(this.problems);
  },
  methods: {
    show(problems) {
      this.problems = problems;
      if (!this.view) return;
      const doc = this.view.state.doc;
      const marks = problems.map((each) => marked(doc, each)).filter((each) => each !== null);
      this.view.dispatch({ effects: setProblems.of(marks) });
    },
    goTo(at) {
      const to = offset(this.view.state.doc, at);
      this.view.dispatch({ selection: { anchor: to }, effects: CM.EditorView.scrollIntoView(to, { y: "center" }) });
      this.view.focus();
    },
    ask(kind, at) {
      const id = ++this.asked;
      const answer = new Promise((resolve) => this.waiting.set(id, resolve));
      this.$emit("ask", { id, kind, position: position(this.view.state.doc, at) });
      return answer;
    },
    answer(id, found) {
      this.waiting.get(id)?.(found);
      this.waiting.delete(id);
    },
    async complete(context) {
      const word = context.matchBefore(/[\w.$-]*/);
      if (!context.explicit && word.from === word.to) return null;
      const found = await this.ask("complete", context.pos);
      if (!found?.length || context.aborted) return null;
      const doc = context.state.doc;
      const from = offset(doc, found[0].start);
      return {
        from,
        options: found.map((each) => ({
          label: each.label,
          type: each.type,
          detail: each.detail,
          apply: each.text,
          info: each.info ? () => this.html(each.info) : undefined,
        })),
        validFor: /^[\w.$-]*$/,
      };
    },
    async hover(view, at) {
      const problems = [];
      view.state.field(problemField).between(at, at, (from, to, mark) => {
        problems.push({ from, to, ...mark.spec.problem });
      });
      if (!problems.length) {
        const found = await this.ask("hover", at);
        if (!found) return null;
        const doc = view.state.doc;
        return {
          pos: offset(doc, found.start),
          end: offset(doc, found.end),
          create: () => ({ dom: this.html(found.html) }),
        };
      }
      return {
        pos: problems[0].from,
        end: problems[0].to,
        create: () => {
          const dom = document.createElement("div");
          dom.className = "play-hover";
          for (const each of problems) {
            const line = dom.appendChild(document.createElement("div"));
            line.textContent = each.code ? `${each.message} [${each.code}]` : each.message;
            if (each.help) {
              const help = dom.appendChild(document.createElement("div"));
              help.className = "play-help";
              help.textContent = `help: ${each.help}`;
            }
          }
          return { dom };
        },
      };
    },
    html(text) {
      const dom = document.createElement("div");
      dom.className = "play-hover";
      dom.setHTML(text);
      return dom;
    },
  },
};
