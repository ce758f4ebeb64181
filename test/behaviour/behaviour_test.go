// Package behaviour checks the list of the behaviour that Slipway shows to the outside. Each line of behaviour.tsv has an id and
// a sentence. Tests name the ids that they prove, in comments or names: `grep -rn MS-03 --include=*_test.go .` finds them. Ids do
// not belong in production code or in pages for users.
package behaviour

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// list is the file of sections ("# PREFIX Title") and items ("ID<tab>sentence").
const list = "behaviour.tsv"

type item struct{ id, sentence string }

type section struct {
	title string
	items []item
}

var (
	idForm    = regexp.MustCompile(`\b([A-Z]{2}[0-9]?)-([0-9]{2})\b`)
	rangeForm = regexp.MustCompile(`\b([A-Z]{2}[0-9]?)-([0-9]{2}) to ([A-Z]{2}[0-9]?)-([0-9]{2})\b`)
)

// idsIn returns the ids in a text; "AB-01 to AB-03" has three.
func idsIn(text string) []string {
	var ids []string
	for _, m := range rangeForm.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[4])
		for n := first; m[1] == m[3] && n <= last; n++ {
			ids = append(ids, fmt.Sprintf("%s-%02d", m[1], n))
		}
	}
	return append(ids, idForm.FindAllString(text, -1)...)
}

func TestIDsIn(t *testing.T) {
	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"none":      {"an encoding is no id", "text in UTF-8, RSA-2048", nil},
		"several":   {"ids stand beside each other", "// MS-01, IP2-06", []string{"MS-01", "IP2-06"}},
		"range":     {"a range names what is between its ends", "MD-01 to MD-03", []string{"MD-01", "MD-02", "MD-03", "MD-01", "MD-03"}},
		"no range":  {"two lists have nothing between them", "MD-01 to MS-03", []string{"MD-01", "MS-03"}},
		"backwards": {"a range that goes back is its ends", "MD-03 to MD-01", []string{"MD-03", "MD-01"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := idsIn(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("%s: idsIn(%q) = %v, want %v", tt.reason, tt.text, got, tt.want)
			}
		})
	}
}

// TestIDs compares the list with the tests: each id that a test names is in the list, and each item of the list is named by a
// test.
func TestIDs(t *testing.T) {
	sections := readList(t)
	named := testsByID(t)
	known := map[string]bool{}
	for _, s := range sections {
		for _, i := range s.items {
			known[i.id] = true
			if len(named[i.id]) == 0 {
				t.Errorf("%s: no test names %s: name it where it is shown, or take it off the list", list, i.id)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(named)) {
		if !known[id] {
			t.Errorf("%v name %s, which is not in test/behaviour/%s: add a line that says what it is", named[id], id, list)
		}
	}
}

func readList(t *testing.T) []section {
	t.Helper()
	var out []section
	seen := map[string]bool{}
	for n, line := range lines(t, list) {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			_, name, _ := strings.Cut(title, " ")
			out = append(out, section{title: name})
			continue
		}
		id, sentence, ok := strings.Cut(line, "\t")
		if !ok || idForm.FindString(id) != id || !strings.HasSuffix(sentence, ".") || len(out) == 0 {
			t.Fatalf("%s:%d: %q is no id, tab and sentence below a section", list, n+1, line)
		}
		if seen[id] {
			t.Errorf("%s:%d: %s is there twice", list, n+1, id)
		}
		seen[id] = true
		last := &out[len(out)-1]
		last.items = append(last.items, item{id: id, sentence: sentence})
	}
	return out
}

// place is a test that names an id; outside of a test function it is a file.
type place struct{ dir, test string }

func (p place) String() string { return p.dir + ": " + p.test }

func testsByID(t *testing.T) map[string][]place {
	t.Helper()
	out := map[string][]place{}
	for _, file := range files(t, func(p string) bool { return strings.HasSuffix(p, "_test.go") && path.Dir(p) != "test/behaviour" }) {
		for id, tests := range testsIn(t, file) {
			for _, test := range tests {
				if p := (place{dir: path.Dir(file), test: test}); !slices.Contains(out[id], p) {
					out[id] = append(out[id], p)
				}
			}
		}
	}
	for _, places := range out {
		slices.SortFunc(places, func(a, b place) int { return cmp.Or(strings.Compare(a.dir, b.dir), strings.Compare(a.test, b.test)) })
	}
	return out
}

// testsIn returns the tests of a file by the ids that they name in code or comments, or in the comment above them.
func testsIn(t *testing.T, file string) map[string][]string {
	t.Helper()
	text := read(t, file)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	add := func(from, to token.Pos, name string) {
		for _, id := range idsIn(text[fset.Position(from).Offset:fset.Position(to).Offset]) {
			out[id] = append(out[id], name)
		}
	}
	rest := parsed.FileStart
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !isTest(f.Name.Name) {
			continue
		}
		begin := f.Pos()
		if f.Doc != nil {
			begin = f.Doc.Pos()
		}
		add(rest, begin, path.Base(file))
		add(begin, f.End(), f.Name.Name)
		rest = f.End()
	}
	add(rest, parsed.FileEnd, path.Base(file))
	return out
}

func isTest(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark", "Example"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// TestIDsStandInTestsOnly: who reads production code, a CRD, the SDK or a page for users has no list of ids at hand, so the
// rule is said in words there.
func TestIDsStandInTestsOnly(t *testing.T) {
	for _, file := range files(t, readByOthers) {
		if found := idForm.FindAllString(read(t, file), -1); len(found) > 0 {
			t.Errorf("%s has the ids %v: say the rule in words", file, found)
		}
	}
}

// readByOthers tells whether a file is read by those who do not read tests.
func readByOthers(p string) bool {
	if strings.HasPrefix(p, "test/") || strings.Contains(p, "/testdata/") {
		return false
	}
	switch path.Ext(p) {
	case ".go":
		return !strings.HasSuffix(p, "_test.go")
	case ".md", ".yaml", ".svg", ".sh", ".html":
		return true
	}
	return false
}

// files returns the paths of files below the root that are kept.
func files(t *testing.T, keep func(string) bool) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && p != root || slices.Contains([]string{"bin", "dist", "generated"}, d.Name())) {
			return filepath.SkipDir
		}
		if rel = filepath.ToSlash(rel); !d.IsDir() && keep(rel) {
			out = append(out, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	var out []string
	s := bufio.NewScanner(strings.NewReader(read(t, path.Join("test/behaviour", file))))
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out
}
