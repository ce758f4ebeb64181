package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/extension/scaffold"
	"github.com/slipwayhq/slipway/internal/fault"
)

// RT-23: what is written is formatted, builds as it is, and passes its own test.
func TestWrittenProjectWorks(t *testing.T) {
	for name, sdk := range map[string]string{"SDK of the binary": "", "SDK of a folder": "../../../../sdk"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "some", "where")
			files, err := scaffold.Write(scaffold.Options{Dir: dir, Name: "my-extension", Module: "example.com/my-extension", SDK: sdk})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{".gitignore", "README.md", "go.mod", "go.sum", "handlers.go", "handlers_test.go", "main.go",
				"testdata/before-cluster-create.yaml", "testdata/generate-patches.yaml"}
			if d := cmp.Diff(want, files); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			_, err = os.Stat(filepath.Join(dir, "third_party"))
			if (err == nil) != (sdk == "") {
				t.Errorf("third_party: %v", err)
			}
			for _, command := range [][]string{{"gofmt", "-l", "."}, {"go", "vet", "./..."}, {"go", "test", "-count=1", "./..."}} {
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
				out, err := cmd.CombinedOutput()
				if err != nil || command[0] == "gofmt" && len(out) > 0 {
					t.Errorf("%s: %v\n%s", strings.Join(command, " "), err, out)
				}
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := scaffold.Options{Dir: filepath.Join(full, "new"), Name: "a", Module: "example.com/a"}
	cases := map[string]struct {
		reason string
		change func(*scaffold.Options)
		want   string
	}{
		"name":   {"it names an ExtensionConfig", func(o *scaffold.Options) { o.Name = "My Extension" }, `"My Extension"`},
		"module": {"go would refuse it", func(o *scaffold.Options) { o.Module = "a b" }, "module path"},
		"full":   {"nothing of the user's is overwritten", func(o *scaffold.Options) { o.Dir = full }, "not empty"},
		"file":   {"a file is no folder", func(o *scaffold.Options) { o.Dir = filepath.Join(full, "mine") }, "cannot be used"},
		"sdk":    {"there is nothing to build with", func(o *scaffold.Options) { o.SDK = full }, "no go.mod"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good
			tc.change(&o)
			_, err := scaffold.Write(o)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
			if _, err := os.Stat(good.Dir); err == nil {
				t.Error("something was written")
			}
		})
	}
}
