/* What somebody looks for at night stands first, and what serves the papers last. The other numbers
   are Sphinx's own. */
const ADDED = [[/^(runbook|troubleshooting)$/, 12], [/^(research|contributing)\//, -8], [/^changelog$/, -8]];

var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    ADDED.reduce((sum, [pages, more]) => (pages.test(page) ? sum + more : sum), score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
