package processconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Data that was encrypted once is opened with the same keys only, also when nothing is to be encrypted any more.
func TestKeysOfData(t *testing.T) { // H8
	for name, test := range map[string]struct {
		reason, recorded, keys, mark, spent string
		opened                              bool
	}{
		"never encrypted":       {"", "", "", "", "", true},
		"first time":            {"", "", "a", "", "", true},
		"same":                  {"", "a", "a", "", "", true},
		"others":                {"Secrets could not be read", "a", "b", "", "", false},
		"none":                  {"Secrets could not be read", "a", "", "", "", false},
		"new ones before them":  {"", "a", "b,a", "", "", true},
		"the same again":        {"", "b,a", "b,a", "", "", true},
		"the old ones gone":     {"not everything is rewritten", "b,a", "b", "", "", false},
		"all rewritten":         {"", "b,a", "b", "m", "", true},
		"said to be rewritten":  {"the data was never opened with these keys", "a", "b", "m", "", false},
		"back to the old ones":  {"what was written since", "b,a", "a", "", "", false},
		"rewritten before":      {"an older snapshot took the place of the data that was rewritten", "b,a", "b", "m", "m", false},
		"rewritten since":       {"once more", "b,a", "b", "n", "m", true},
		"rewritten, still both": {"", "b", "b", "m", "", true},
	} {
		f := processconfig.Folder(t.TempDir())
		if err := f.WriteRun(processconfig.Run{PID: 1, Version: "v1.36.3", EncryptionKeys: test.recorded}); err != nil {
			t.Fatal(err)
		}
		if err := f.WriteRestored(processconfig.Restore{ID: "r", SpentMark: test.spent}); err != nil {
			t.Fatal(err)
		}
		d, err := f.ReadData()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.KeysProblem(test.keys, test.mark); (err == nil) != test.opened {
			t.Errorf("%s: %s: %v", name, test.reason, err)
		}
	}
}

// What wrote the data is known from the record of the last process, whether or not that lives.
func TestData(t *testing.T) {
	tests := map[string]struct {
		reason   string
		recorded string // empty: nothing ran
		database bool
		version  string
		says     string // empty: it may start
	}{
		"new":           {"nothing ran here", "", false, "v1.36.3", ""},
		"killed early":  {"the database comes before the record", "", true, "v1.36.3", ""},
		"same":          {"", "v1.36.3", true, "v1.36.3", ""},
		"patch":         {"", "v1.36.3", true, "v1.36.4", ""},
		"next":          {"", "v1.36.3", true, "v1.37.0", ""},
		"skipped":       {"objects are converted one minor version at a time", "v1.36.3", true, "v1.38.0", "would skip a minor version"},
		"older":         {"objects are not converted back", "v1.36.3", true, "v1.35.9", "newer than v1.35.9"},
		"older patch":   {"a release is not made for what a later one wrote", "v1.36.3", true, "v1.36.2", "newer than v1.36.2"},
		"next major":    {"", "v1.36.3", true, "v2.36.3", "would skip"},
		"database gone": {"it would start empty", "v1.36.3", false, "v1.36.3", "does not start it without data"},
	}
	for name, test := range tests {
		f := processconfig.Folder(t.TempDir())
		if test.recorded != "" {
			if err := f.WriteRun(processconfig.Run{PID: 1, Version: test.recorded}); err != nil {
				t.Fatal(err)
			}
		}
		if test.database {
			if err := os.MkdirAll(filepath.Join(f.Etcd(), "member"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		d, err := f.ReadData()
		if err != nil || d.Exists != test.database || d.Version != test.recorded {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		err = d.Problem(test.version)
		if (test.says == "") != (err == nil) || err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %s: got %v, want %q", name, test.reason, err, test.says)
		}
	}
}
