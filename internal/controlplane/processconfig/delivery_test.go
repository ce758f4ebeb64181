package processconfig_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

// What is remembered of the data guards it where its folder says nothing: a volume may have been replaced by an empty one.
func TestReceive(t *testing.T) {
	tests := map[string]struct {
		why      string
		database bool
		run      string // version of run.json; empty: there is none
		record   *processconfig.Record
		keys     string // of the configuration
		reason   string // empty: it is received
	}{
		"first start":          {"nothing is remembered", false, "", nil, "", ""},
		"data":                 {"", true, "v1.36.3", &processconfig.Record{Version: "v1.36.3"}, "", ""},
		"data without record":  {"a crash before it was remembered", true, "v1.36.3", nil, "", ""},
		"an empty volume":      {"it would start empty", false, "", &processconfig.Record{Version: "v1.36.3"}, "", processconfig.ReasonDataMissing},
		"data of a newer one":  {"a volume of another control plane", true, "v1.37.0", &processconfig.Record{Version: "v1.36.3"}, "", processconfig.ReasonDataVersion},
		"a snapshot of volume": {"without run.json the record counts", true, "", &processconfig.Record{Version: "v1.37.0"}, "", processconfig.ReasonDataVersion},
		"other keys":           {"Secrets could not be read", true, "v1.36.3", &processconfig.Record{Version: "v1.36.3", EncryptionKeys: "a"}, "b", processconfig.ReasonEncryptionKeys},
		"the same keys":        {"", true, "v1.36.3", &processconfig.Record{Version: "v1.36.3", EncryptionKeys: "a"}, "a", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from, f := t.TempDir(), processconfig.Folder(filepath.Join(t.TempDir(), "plane"))
			c := config()
			c.EncryptionKeys = test.keys
			files := map[string]any{processconfig.DeliveredConfig: c, "ca.crt": "new"}
			if test.record != nil {
				files[processconfig.DeliveredRecord] = test.record
			}
			for name, content := range files {
				text, err := json.Marshal(content)
				must(t, err)
				must(t, os.WriteFile(filepath.Join(from, name), text, 0o600))
			}
			must(t, os.MkdirAll(filepath.Join(from, "..data"), 0o700))
			if test.database {
				must(t, os.MkdirAll(filepath.Join(f.Etcd(), "member"), 0o700))
			}
			if test.run != "" {
				must(t, f.WriteRun(processconfig.Run{PID: 1, Version: test.run}))
			}
			err := processconfig.Delivery(from).Receive(f)
			if test.reason != "" {
				if _, missing := os.Stat(filepath.Join(f.PKI(), "ca.crt")); fault.As(err).Reason != test.reason || missing == nil {
					t.Errorf("%s: %v; authorities were written: %t", test.why, err, missing == nil)
				}
				return
			}
			must(t, err)
			got, err := processconfig.Load(f.Config())
			must(t, err)
			if text, err := os.ReadFile(filepath.Join(f.PKI(), "ca.crt")); err != nil || string(text) != `"new"` || got.Hash() != c.Hash() {
				t.Errorf("%v: %s, %+v", err, text, got)
			}
			if entries, err := os.ReadDir(f.PKI()); err != nil || len(entries) != 1 {
				t.Errorf("%v: %v", err, entries)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
