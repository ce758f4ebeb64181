package testkit_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipwayhq/slipway/test/testkit"
)

// witness is a test that only counts its errors.
type witness struct {
	testing.TB
	errors int
}

func (w *witness) Errorf(string, ...any) { w.errors++ }

func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "x.golden")
	set := func(value string) {
		if err := flag.Set("update", value); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { set("false") })
	set("true")
	testkit.CompareGolden(t, file, "one")
	if text, err := os.ReadFile(file); err != nil || string(text) != "one" {
		t.Errorf("wrote %q, %v", text, err)
	}
	set("false")
	for got, want := range map[string]int{"one": 0, "two": 1} {
		w := &witness{TB: t}
		if testkit.CompareGolden(w, file, got); w.errors != want {
			t.Errorf("%s: %d errors, want %d", got, w.errors, want)
		}
	}
}
