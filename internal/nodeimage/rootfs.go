package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/gobuild"
)

// debianArchiveKeys are the keys that Debian's packages are checked with, on Debian and on Ubuntu.
const debianArchiveKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

// userland is a Debian file system to make.
type userland struct {
	name     string
	packages []string
	// variant of mmdebstrap: "minbase" is a system, "extract" only the files of the packages and what they need.
	variant string
	// of is when what Debian had published was last asked for; empty: not yet.
	of string
}

// refreshedFile of the cache folder says when packages were last to be taken from Debian as they were then. Where it is gone, all that
// was made before is too, and is made as packages are now.
const refreshedFile = "debian-refreshed"

// refreshed returns when that was; now, if it is to be now.
func refreshed(dir string, refresh bool, now time.Time) (string, error) {
	file := filepath.Join(dir, refreshedFile)
	if refresh {
		at := now.UTC().Format(time.RFC3339)
		return at, os.WriteFile(file, []byte(at), 0o600)
	}
	at, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = os.Chtimes(file, now, now) // what is used is not swept
	}
	return string(at), err
}

// debian makes userlands.
type debian struct {
	store   gobuild.Store
	sources []string
}

// arguments are what mmdebstrap is told besides where packages come from: no documentation but licences, no devices.
func (u userland) arguments() []string {
	args := []string{"--variant=" + u.variant, "--include=" + strings.Join(u.packages, ","), "--format=tar", "--skip=output/dev"}
	for _, path := range []string{"man", "doc", "locale", "info", "lintian"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+path+"/*")
	}
	return append(args, "--dpkgopt=path-include=/usr/share/doc/*/copyright")
}

// key stands for what a userland is made from.
func (u userland) key() string {
	parts := append(u.arguments(), debianSuite, runtime.GOARCH)
	if u.of != "" {
		parts = append(parts, u.of)
	}
	return gobuild.KeyOf(parts...)
}

// make returns the userland as a tar archive. A userland is made again when its packages change or when that is asked for, not when
// Debian publishes updates: builds that no one asked to change do not change.
func (d debian) make(ctx context.Context, u userland) (string, error) {
	return d.store.Run(ctx, gobuild.Step{Name: u.name, Key: u.key(), Make: func(ctx context.Context, file string) error {
		if _, err := os.Stat(debianArchiveKeys); err != nil {
			return fault.New(fault.Invalid, "MissingKeys", "%s is missing: install it with: apt-get install debian-archive-keyring", debianArchiveKeys)
		}
		args := append([]string{"mmdebstrap", "--quiet"}, u.arguments()...)
		args = append(args, proxyOptions(ctx)...)
		args = append(args, debianSuite, file)
		_, err := gobuild.Command{Env: []string{"LC_ALL=C"}, Args: append(args, d.sources...)}.Run(ctx)
		return err
	}})
}

// machineSources returns the files of the machine's apt configuration (root is "/") that name a mirror of the suite,
// so that packages come from where the machine's own come from. Where there is none, as on Ubuntu, mmdebstrap uses
// Debian's public mirrors. Files that name others beside it are left out: their keys are not known.
func machineSources(root string) []string {
	candidates, _ := filepath.Glob(filepath.Join(root, "etc/apt/sources.list.d/debian*"))
	candidates = append(candidates, filepath.Join(root, "etc/apt/sources.list"))
	sort.Strings(candidates)
	var out []string
	for _, file := range candidates {
		text, err := os.ReadFile(file)
		if err == nil && onlySuite(string(text)) {
			out = append(out, file)
		}
	}
	return out
}

// checkVerified refuses apt source files that turn off the verification of packages: whatever a mirror, or anyone on the way to it, sends would be
// on every node.
func checkVerified(files []string) error {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if option := unverified(string(text)); option != "" {
			return fault.New(fault.Invalid, "UnverifiedPackages",
				"%s has the option %s, which turns off the verification of packages: remove it, and give the key of the mirror with signed-by", file, option)
		}
	}
	return nil
}

// unverified returns the option of an apt source file that turns verification off; empty: there is none.
func unverified(text string) string {
	for _, line := range lines(text) {
		field, value, _ := strings.Cut(strings.ToLower(line), ":")
		for _, name := range []string{"trusted", "allow-insecure", "allow-weak"} {
			if field == name && strings.TrimSpace(value) == "yes" {
				return line
			}
		}
		options, ok := between(line, "[", "]")
		for _, option := range strings.Fields(strings.ToLower(options)) {
			if name, value, _ := strings.Cut(option, "="); ok && value == "yes" && (name == "trusted" || name == "allow-insecure" || name == "allow-weak") {
				return option
			}
		}
	}
	return ""
}

// between is the text between two marks.
func between(text, from, to string) (string, bool) {
	_, rest, begins := strings.Cut(text, from)
	inner, _, ends := strings.Cut(rest, to)
	return inner, begins && ends
}

// onlySuite says whether an apt source file names the suite and nothing but it and its updates.
func onlySuite(text string) bool {
	found := false
	for _, line := range lines(text) {
		var suites []string
		if rest, ok := strings.CutPrefix(line, "Suites:"); ok {
			suites = strings.Fields(rest)
		} else if f := strings.Fields(line); f[0] == "deb" {
			for i, word := range f {
				if strings.Contains(word, "://") && i+1 < len(f) {
					suites = f[i+1 : i+2]
				}
			}
		}
		for _, s := range suites {
			if s != debianSuite && !strings.HasPrefix(s, debianSuite+"-") {
				return false
			}
			found = true
		}
	}
	return found
}

// proxyOptions passes the machine's proxy for apt on to mmdebstrap.
func proxyOptions(ctx context.Context) []string {
	out, err := gobuild.Command{Args: []string{"apt-config", "dump", "--format", "%f=%v%n", "Acquire::http::Proxy", "Acquire::https::Proxy"}}.Run(ctx)
	if err != nil {
		return nil
	}
	var args []string
	for _, line := range lines(string(out)) {
		if name, value, ok := strings.Cut(line, "="); ok && value != "" {
			args = append(args, fmt.Sprintf("--aptopt=%s %q", name, value))
		}
	}
	return args
}
