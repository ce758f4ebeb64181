package image

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
)

func TestText(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	all := []versions.Release{
		{Version: "v1.34.3", Problem: "Kubernetes v1.34.3 was added by slipway v0.0.9; remove it, and add it again", Size: 1},
		{Version: "v1.35.4", Size: 116_269_218, Added: now.Add(-3 * time.Hour)}, {Version: "v1.36.3", Included: true},
	}
	planes := []supervisor.Status{
		{Name: "default.demo", Version: "v1.36.3", DesiredVersion: "v1.36.3"}, {Name: "team-a.next", Version: "v1.35.4", DesiredVersion: "v1.36.3"},
		{Name: "team-a.stopped", DesiredVersion: "v1.35.4"}, {Name: "b.one", Version: "v1.36.3"}, {Name: "c.one", Version: "v1.36.3"},
	}
	var out bytes.Buffer
	if err := printVersions(&out, rowsOf(all, planes, map[string]int64{"v1.36.3": 753_000_000}), now); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"VERSION  CONTROL PLANE  NODE IMAGE  ADDED  USED BY\n" +
		"v1.34.3  not usable     -           -      -\n" +
		"v1.35.4  116 MB         -           3h     team-a/next, team-a/stopped\n" +
		"v1.36.3  included       753 MB      -      b/one, c/one, default/demo and 1 more\n" +
		"\nv1.34.3: Kubernetes v1.34.3 was added by slipway v0.0.9; remove it, and add it again\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The sources of the program are all of slipway's packages that it consists of, and import none of the others.
func TestSourcesAreComplete(t *testing.T) {
	const module = "github.com/slipwayhq/slipway/"
	have, wanted := map[string]bool{}, map[string]string{}
	err := fs.WalkDir(slipway.Sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		data, err := fs.ReadFile(slipway.Sources, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
		if err != nil {
			return err
		}
		have[path.Dir(name)] = true
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(p, module); ok {
				wanted[own] = name
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !have[programPackage] {
		t.Errorf("%s is not among them", programPackage)
	}
	for dir, by := range wanted {
		if !have[dir] {
			t.Errorf("%s imports %s, which is not among them", by, dir)
		}
	}
	for dir := range have {
		if dir != programPackage && wanted[dir] == "" {
			t.Errorf("%s is among them, and nothing imports it", dir)
		}
	}
}

// The verbs need no management cluster: they work on a data directory, and say what is wrong with what they are given.
func TestVerbs(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"list":            {[]string{"list"}, ""},
		"add nothing":     {[]string{"add"}, "needs one argument, VERSION"},
		"add latest":      {[]string{"add", "latest"}, "is not a Kubernetes version"},
		"remove absent":   {[]string{"remove", "v1.34.1"}, "this host does not have Kubernetes v1.34.1"},
		"export absent":   {[]string{"export", "v1.34.1", "-f", "-"}, "this host does not have Kubernetes v1.34.1"},
		"import nothing":  {[]string{"import", dir + "/none"}, "the archive cannot be read"},
		"import a folder": {[]string{"import", dir}, "not a complete archive"},
	} {
		t.Run(name, func(t *testing.T) {
			e := term.System()
			var out bytes.Buffer
			e.Out, e.Err = &out, &out
			cmd := VersionsCommand(e)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append(test.args, "--data-dir", dir))
			err := cmd.Execute()
			if test.says == "" && err == nil {
				return
			}
			if err == nil || test.says == "" || fault.KindOf(err) == fault.Transient || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q\n%s", err, test.says, out.String())
			}
		})
	}
}
