// uPlot as an ES module. Its own one is not minified.
export { default } from "uplot";
