package slipway

import (
	"go/ast"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	linkForm    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headingForm = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fenceForm   = regexp.MustCompile("(?ms)^```.*?^```$")
	noSlug      = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks checks that the target of each relative link in a document exists, including its heading if the link has one.
func TestLinks(t *testing.T) {
	checked := 0
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linkForm.FindAllStringSubmatch(fenceForm.ReplaceAllString(string(text), ""), -1) {
			target, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
				continue
			}
			if target.IsAbs() {
				continue
			}
			checked++
			checkLink(t, page, target)
		}
	}
	if checked < 100 {
		t.Errorf("found only %d links: they are not written as [text](target)", checked)
	}
}

func checkLink(t *testing.T, page string, target *url.URL) {
	t.Helper()
	file := page
	if root, ok := strings.CutPrefix(target.Path, "/"); ok {
		file = root
	} else if target.Path != "" {
		file = filepath.Join(filepath.Dir(page), target.Path)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("%s links to %s, which does not exist", page, target)
		return
	}
	if target.Fragment == "" || filepath.Ext(file) != ".md" {
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headingForm.FindAllStringSubmatch(fenceForm.ReplaceAllString(string(text), ""), -1) {
		if slug(h[1]) == target.Fragment {
			return
		}
	}
	t.Errorf("%s links to %s, but %s has no such heading", page, target, file)
}

// slug returns the name of a heading in a URL, as code hosts derive it.
func slug(heading string) string {
	return strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "dist" || d.Name() == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(p) == ".md" {
			out = append(out, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	topicForm = regexp.MustCompile(`slipway docs ([a-z][a-z0-9-]*(?:\.yaml)?)(?:#([a-z0-9-]+))?`)
	pageForm  = regexp.MustCompile(`docs/[\w/-]+\.md`)
)

// TestTopics checks that messages name no page of the repository, which the user of a binary does not have, but
// `slipway docs TOPIC`, and that each such topic and section exists.
func TestTopics(t *testing.T) {
	named := 0
	for _, s := range sources(t) {
		if s.isTest() || strings.HasPrefix(s.dir, "hack") || strings.HasPrefix(s.dir, "test") || strings.HasPrefix(s.path, "internal/cli/docs_") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if page := pageForm.FindString(text); page != "" {
				t.Errorf("%s names %s: name the command `slipway docs %s`", s.path, page, strings.TrimSuffix(filepath.Base(page), ".md"))
			}
			named += checkTopics(t, s.path, text)
			return true
		})
	}
	if named < 5 {
		t.Errorf("only %d topics are named", named)
	}
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		checkTopics(t, page, string(text))
	}
}

// checkTopics checks the topics that a text names and returns their number.
func checkTopics(t *testing.T, where, text string) int {
	t.Helper()
	found := topicForm.FindAllStringSubmatch(text, -1)
	for _, m := range found {
		target := m[1]
		if filepath.Ext(target) == "" {
			target += ".md"
		}
		checkLink(t, where, &url.URL{Path: "/docs/" + target, Fragment: m[2]})
	}
	return len(found)
}
