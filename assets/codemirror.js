// The parts of CodeMirror that tocsin/console/static/js/editor.js uses, as one file.
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { yamlLanguage } from "@codemirror/lang-yaml";
export {
  HighlightStyle, LanguageSupport, bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
export { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
export { Compartment, EditorState } from "@codemirror/state";
export {
  EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers,
} from "@codemirror/view";
export { tags } from "@lezer/highlight";
