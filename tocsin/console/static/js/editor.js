// <tocsin-editor>: a text field for YAML that becomes CodeMirror, if the package was built with it.
// After each pause of typing it dispatches `settled` to the parts of the page that show what the text would
// do, and marks the problems that the server has found. The text field stays the one that the form sends.

const PAUSE_MS = 450;
const REPLAY_MS = 900;

class TocsinEditor extends HTMLElement {
  connectedCallback() {
    this.area = this.querySelector("textarea");
    this.form = this.closest("form");
    this.panels = ["plan", "replay"].map((id) => document.getElementById(id));
    this.area.addEventListener("input", () => this.wait());
    this.form.elements.namedItem("since")?.addEventListener("change", () => this.settle(this.panels[1]));
    if (this.panels[0]) {
      new MutationObserver(() => this.markProblems()).observe(this.panels[0], { childList: true });
    }
    this.upgrade();
    this.wait();
  }

  disconnectedCallback() {
    clearTimeout(this.pause);
    clearTimeout(this.longPause);
  }

  /** Begin to wait for a pause of typing. */
  wait() {
    clearTimeout(this.pause);
    clearTimeout(this.longPause);
    this.pause = setTimeout(() => this.settle(this.panels[0]), PAUSE_MS);
    this.longPause = setTimeout(() => this.settle(this.panels[1]), REPLAY_MS);
  }

  /** @param {HTMLElement | null} panel */
  settle(panel) {
    panel?.dispatchEvent(new CustomEvent("settled"));
  }

  async upgrade() {
    const source = this.dataset.codemirror;
    if (!source) return;
    const code = await import(source);
    const root = this.attachShadow({ mode: "open" });
    const box = document.createElement("div");
    root.append(box, document.createElement("slot"));
    this.area.hidden = true;
    this.code = code;
    this.view = new code.EditorView({
      root, parent: box, doc: this.area.value, extensions: this.extensions(code),
    });
    this.classList.add("upgraded");
    this.markProblems();
  }

  extensions(code) {
    const { EditorView, keymap } = code;
    return [
      code.lineNumbers(), code.foldGutter(), code.history(), code.drawSelection(), code.highlightActiveLine(),
      code.highlightActiveLineGutter(), code.bracketMatching(), code.closeBrackets(), code.indentOnInput(),
      code.highlightSelectionMatches(), code.lintGutter(), code.indentUnit.of("  "),
      new code.LanguageSupport(code.yamlLanguage),
      code.syntaxHighlighting(highlights(code)),
      code.autocompletion({ override: [(context) => this.complete(context)] }),
      // Tab moves on, so that the keyboard leaves the editor; Ctrl-] and Ctrl-[ indent.
      keymap.of([
        ...code.closeBracketsKeymap, ...code.defaultKeymap, ...code.searchKeymap, ...code.historyKeymap,
        ...code.foldKeymap, ...code.completionKeymap, ...code.lintKeymap,
      ]),
      EditorView.contentAttributes.of({ "aria-label": "Document" }),
      EditorView.lineWrapping,
      EditorView.updateListener.of((update) => {
        if (!update.docChanged) return;
        this.area.value = update.state.doc.toString();
        this.wait();
      }),
      theme(EditorView),
    ];
  }

  /** Completions from the server, by the place of the cursor. */
  async complete(context) {
    const word = context.matchBefore(/[\w.-]*/);
    if (!context.explicit && word.from === word.to && !/(: |- )$/.test(lineBefore(context))) return null;
    const line = context.state.doc.lineAt(context.pos);
    const answer = await fetch(this.dataset.complete, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        text: context.state.doc.toString(), line: line.number, column: context.pos - line.from + 1,
      }),
    });
    if (!answer.ok || context.aborted) return null;
    const { completions } = await answer.json();
    return {
      from: word.from,
      validFor: /^[\w.-]*$/,
      options: completions.map(({ label, kind, detail }) => ({
        label, detail: detail.slice(0, 60), type: kind === "key" ? "property" : kind === "name" ? "variable" : "enum",
        apply: kind === "key" ? `${label}: ` : label,
      })),
    };
  }

  /** Underline the problems of the plan at their places. */
  markProblems() {
    if (!this.view || !this.panels[0]) return;
    const document = this.view.state.doc;
    const diagnostics = [...this.panels[0].querySelectorAll("[data-line]")].map((item) => {
      const line = document.line(Math.min(Math.max(Number(item.dataset.line), 1), document.lines));
      const from = Math.min(line.from + Number(item.dataset.column) - 1, line.to);
      const length = /^[^\s:,\]}]+/.exec(document.sliceString(from, line.to))?.[0].length ?? 1;
      return {
        from, to: Math.min(from + length, line.to), severity: "error",
        message: item.querySelector(".text").textContent,
      };
    });
    diagnostics.sort((one, other) => one.from - other.from);
    this.view.dispatch(this.code.setDiagnostics(this.view.state, diagnostics));
  }
}

function lineBefore(context) {
  const line = context.state.doc.lineAt(context.pos);
  return context.state.doc.sliceString(line.from, context.pos);
}

function highlights({ HighlightStyle, tags }) {
  return HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--code-value)" },
    { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
    { tag: [tags.meta, tags.keyword, tags.punctuation], color: "var(--soft)" },
  ]);
}

function theme(EditorView) {
  return EditorView.theme({
    "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13.5px",
           border: "1px solid var(--line-strong)", borderRadius: "6px" },
    "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
    ".cm-scroller": { fontFamily: "var(--mono)", minHeight: "26rem", maxHeight: "70vh", lineHeight: "1.55" },
    ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--faint)", border: "none" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft) !important" },
    ".cm-tooltip, .cm-panels": { backgroundColor: "var(--surface)", color: "var(--text)",
                                 border: "1px solid var(--line-strong)" },
    ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
    ".cm-completionDetail": { color: "inherit", opacity: "0.75", fontStyle: "normal", marginLeft: "1em" },
  });
}

customElements.define("tocsin-editor", TocsinEditor);
