package nodeimage

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestOnlySuite(t *testing.T) {
	for name, c := range map[string]struct {
		reason, text string
		want         bool
	}{
		"deb822":    {"the format of new installations", "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n", true},
		"one line":  {"the format of old ones, options included", "deb [arch=amd64 signed-by=/k] http://mirror.example/debian bookworm main\ndeb http://mirror.example/debian bookworm-backports main\n", true},
		"mixed":     {"packages of another suite would be mixed in", "deb http://mirror.example/debian bookworm main\ndeb http://mirror.example/debian trixie main\n", false},
		"ubuntu":    {"another distribution has no such suite", "Types: deb\nURIs: http://mirror.example/ubuntu\nSuites: noble\n", false},
		"nothing":   {"a file without a suite is no mirror", "# empty\n", false},
		"commented": {"a comment does not count", "# deb http://mirror.example/debian trixie main\ndeb http://mirror.example/debian bookworm main\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hasOnlySuite(c.text); got != c.want {
				t.Errorf("got %v: %s", got, c.reason)
			}
		})
	}
}

func TestMachineSources(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/apt/sources.list":                     "deb http://mirror.example/debian bookworm main\n",
		"etc/apt/sources.list.d/debian.sources":    "Suites: bookworm\n",
		"etc/apt/sources.list.d/debian-13.sources": "Suites: trixie\n",
		"etc/apt/sources.list.d/vendor.list":       "deb http://vendor.example/debian bookworm main\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(root, "etc/apt/sources.list"), filepath.Join(root, "etc/apt/sources.list.d/debian.sources")}
	if diff := cmp.Diff(want, machineSources(root)); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// Sources without verification are refused, and the message names file and option.
func TestUnverifiedSources(t *testing.T) {
	for text, want := range map[string]string{
		"deb [trusted=yes] http://mirror.example/debian bookworm main\n":                         "trusted=yes",
		"deb [arch=amd64 Allow-Insecure=yes] http://mirror.example/debian bookworm main\n":       "allow-insecure=yes",
		"Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nTrusted: yes\n":       "Trusted: yes",
		"deb [signed-by=/k trusted=no] http://mirror.example/debian bookworm main\n":             "",
		"Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nSigned-By: /k\n":      "",
		"# deb [trusted=yes] http://x/debian bookworm main\ndeb http://x/debian bookworm main\n": "",
	} {
		file := filepath.Join(t.TempDir(), "sources.list")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkVerified([]string{file})
		if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestMissing(t *testing.T) {
	has := func(programs ...string) func(string) (string, error) {
		return func(p string) (string, error) {
			for _, have := range programs {
				if p == have {
					return "/bin/" + p, nil
				}
			}
			return "", exec.ErrNotFound
		}
	}
	for name, c := range map[string]struct {
		reason string
		root   bool
		look   func(string) (string, error)
		want   []string
	}{
		"all":       {"nothing to say", true, has("go", "mmdebstrap"), nil},
		"none":      {"all is named at once, not one after the other", true, has(), []string{"Go toolchain", "apt-get install mmdebstrap"}},
		"ordinary":  {"without root, user namespaces need a helper", false, has("go", "mmdebstrap"), []string{"apt-get install uidmap"}},
		"with help": {"which may be there", false, has("go", "mmdebstrap", "newuidmap"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkPrerequisites(prerequisites(c.root), c.look)
			if len(c.want) == 0 {
				if err != nil {
					t.Errorf("%v: %s", err, c.reason)
				}
				return
			}
			var f *fault.Fault
			if !errors.As(err, &f) || f.Kind != fault.Invalid {
				t.Fatalf("got %v, want a fault of kind Invalid", err)
			}
			for _, w := range c.want {
				if !strings.Contains(f.Message, w) {
					t.Errorf("%q does not say %q: %s", f.Message, w, c.reason)
				}
			}
		})
	}
}

// The scripts of the image are tested as they are embedded.
func TestScripts(t *testing.T) {
	for _, name := range []string{"preload", "rootfs/usr/lib/slipway/entrypoint", "rootfs/usr/bin/kubeadm"} {
		text, err := fs.ReadFile(sources(), name)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = strings.NewReader(string(text))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// The kubeadm of a node says which checks to leave out, where kubeadm has that flag and nowhere else.
func TestKubeadmWrapper(t *testing.T) {
	text, err := fs.ReadFile(sources(), "rootfs/usr/bin/kubeadm")
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Replace(string(text), "exec /usr/lib/slipway/kubeadm", "exec echo", 1)
	const flag = " --ignore-preflight-errors=SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables"
	for args, adds := range map[string]bool{
		"join --config /run/kubeadm/kubeadm-join-config.yaml": true,
		"init --config /run/kubeadm/kubeadm.yaml":             true,
		"init":                              true,
		"reset --force":                     true,
		"upgrade apply v1.37.0":             true,
		"upgrade node":                      true,
		"join phase preflight":              true,
		"join phase kubelet-start":          false,
		"init phase certs all":              false,
		"upgrade node phase kubelet-config": false,
		"upgrade plan":                      false,
		"token create --print-join-cmd":     false,
		"version -o short":                  false,
		"":                                  false,
	} {
		out, err := exec.Command("sh", append([]string{"-c", script, "kubeadm"}, strings.Fields(args)...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := args
		if adds {
			want += flag
		}
		if got := strings.TrimSuffix(string(out), "\n"); got != want {
			t.Errorf("kubeadm %s\n got %q\nwant %q", args, got, want)
		}
	}
}

// Packages stay what they were until newer ones are asked for, and then for all images of the cache.
func TestRefreshed(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 25, 1, 2, 3, 0, time.UTC)
	is := func(refresh bool, at time.Time, want string) {
		t.Helper()
		if got, err := lastRefresh(dir, refresh, at); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	is(false, now, "")
	is(true, now, "2026-11-25T01:02:03Z")
	is(false, now.Add(time.Hour), "2026-11-25T01:02:03Z")
	if info, err := os.Stat(filepath.Join(dir, refreshedFile)); err != nil || !info.ModTime().Equal(now.Add(time.Hour)) {
		t.Errorf("it would be swept: %v, %v", info, err)
	}
	before := userland{packages: []string{"runc"}, variant: "minbase"}
	after := before
	after.refreshedAt = "2026-11-25T01:02:03Z"
	if before.key() == after.key() {
		t.Error("the packages that are there would do")
	}
}
