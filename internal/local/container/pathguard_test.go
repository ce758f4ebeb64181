package container_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/local/container"
)

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"shared/a", "data/pki"} {
		if err := os.MkdirAll(at(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("shared/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"shared/link": at("shared/a"), "shared/root": "/", "shared/kernel": "/proc/1", "shared/key": at("data/pki"), "shared/gone": at("nowhere"), "alias": at("data"),
	} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", at("shared/s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	g := container.PathGuard{Reserved: []string{at("alias"), at("not-there")}}
	cases := map[string]struct{ reason, path, want, wrong string }{
		"folder":            {"an ordinary one", at("shared"), at("shared"), ""},
		"file":              {"an ordinary one", at("shared/file"), at("shared/file"), ""},
		"link":              {"where it leads is what is asked about", at("shared/link"), at("shared/a"), ""},
		"dots":              {"where they lead", at("shared/a/../file"), at("shared/file"), ""},
		"link to all":       {"all of the host holds everything", at("shared/root"), "", "even if the operator allows it"},
		"link to kernel":    {"/proc", at("shared/kernel"), "", "even if the operator allows it"},
		"/":                 {"it holds everything", "/", "", "even if the operator allows it"},
		"/dev":              {"devices", "/dev", "", "even if the operator allows it"},
		"data directory":    {"it is reserved, by another name", at("data"), "", "even if the operator allows it"},
		"in it":             {"keys", at("data/pki"), "", "even if the operator allows it"},
		"link into it":      {"keys", at("shared/key"), "", "even if the operator allows it"},
		"above it":          {"it holds the data directory", dir, "", "even if the operator allows it"},
		"reserved, not yet": {"it may come to be", at("not-there"), "", "does not exist"},
		"socket":            {"a program of the host listens", at("shared/s"), "", "neither a directory nor a regular file"},
		"nothing":           {"Docker would make a folder there", at("shared/gone"), "", "does not exist"},
		"relative":          {"to what?", "shared", "", "absolute"},
		"a zero byte":       {"ends a path for the kernel", at("shared") + "\x00/../../etc", "", "absolute"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := g.Resolve(tc.path)
			if got != tc.want || (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}
