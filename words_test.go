package slipway

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// wordBudgets are the allowed occurrences in 10,000 words. Cluster API, cert-manager, Karpenter, controller-runtime and
// kind use these words at a tenth of the rate or not at all. In large numbers they make a text hard to read. Budgets may
// be lowered but never raised.
var wordBudgets = []struct {
	words    string
	form     *regexp.Regexp
	comments float64
	docs     float64
}{
	{"says, said, say", regexp.MustCompile(`(?i)\b(says?|said)\b`), 8, 8},
	{"that of, those of, what is, what has", regexp.MustCompile(`(?i)\b(that of|those of|what is|what has)\b`), 8, 8},
	{"answer", regexp.MustCompile(`(?i)\banswer(s|ed)?\b`), 6, 6},
	{"ask", regexp.MustCompile(`(?i)\bask(s|ed)?\b`), 4, 4},
	{"tell, told", regexp.MustCompile(`(?i)\b(tells?|told)\b`), 3, 3},
	{"keep, kept", regexp.MustCompile(`(?i)\b(keeps?|kept)\b`), 7, 7},
	{"no one, someone, person, people", regexp.MustCompile(`(?i)\b(no one|someone|persons?|people)\b`), 3, 3},
}

// TestWordsOfComments checks the comments of production code against the budgets.
func TestWordsOfComments(t *testing.T) {
	var text strings.Builder
	for _, s := range sources(t) {
		if s.isTest() || ast.IsGenerated(s.file) {
			continue
		}
		for _, group := range s.file.Comments {
			text.WriteString(group.Text())
			text.WriteByte('\n')
		}
	}
	checkWords(t, text.String(), func(n int) float64 { return wordBudgets[n].comments })
}

// TestWordsOfDocs checks the documents against the budgets, without code blocks, which contain the output of programs.
func TestWordsOfDocs(t *testing.T) {
	var text strings.Builder
	for _, page := range documents(t) {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(fenceForm.ReplaceAllString(string(content), ""))
		text.WriteByte('\n')
	}
	checkWords(t, text.String(), func(n int) float64 { return wordBudgets[n].docs })
}

func checkWords(t *testing.T, text string, budget func(int) float64) {
	t.Helper()
	total := len(strings.Fields(text))
	if total < 20_000 {
		t.Fatalf("found only %d words: the test would check nothing", total)
	}
	for n, b := range wordBudgets {
		found := len(b.form.FindAllString(text, -1))
		rate := float64(found) * 10_000 / float64(total)
		t.Logf("%s: %.1f", b.words, rate)
		if rate > budget(n) {
			t.Errorf("%q: %.1f in 10,000 words (%d of %d), at most %.0f", b.words, rate, found, total, budget(n))
		}
	}
}
