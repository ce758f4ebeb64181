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
)

// debianArchiveKeys is the keyring for verifying Debian's packages, on Debian and on Ubuntu.
const debianArchiveKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

// userland is a Debian file system to build. A node image needs two: the complete system of the node, and the one in
// its container images for network programs.
type userland struct {
	name     string
	packages []string
	// variant of mmdebstrap: "minbase" is a complete system, "extract" only the files of the packages and their
	// dependencies.
	variant string
	// refreshedAt is the time of the last refresh of Debian's packages. Empty: never.
	refreshedAt string
}

// refreshedFile in the cache directory contains the time of the last refresh of Debian's packages. When the sweep
// deletes the file, it has also deleted all older results, and userlands are then built with the latest packages.
const refreshedFile = "debian-refreshed"

// lastRefresh returns the time of the last refresh, and records the current time if refresh is set. The time is part of
// the key of a userland, so a refresh rebuilds it. newPlan calls it.
func lastRefresh(dir string, refresh bool, now time.Time) (string, error) {
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
		err = os.Chtimes(file, now, now) // protects the file from the sweep while it is used
	}
	return string(at), err
}

// debian builds userlands. Builds of node images and [BuildHostParts] create one.
type debian struct {
	store   BuildCache
	sources []string
}

// arguments returns the options of mmdebstrap except the package sources: no documentation except licences, no devices.
func (u userland) arguments() []string {
	args := []string{"--variant=" + u.variant, "--include=" + strings.Join(u.packages, ","), "--format=tar", "--skip=output/dev"}
	for _, path := range []string{"man", "doc", "locale", "info", "lintian"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+path+"/*")
	}
	return append(args, "--dpkgopt=path-include=/usr/share/doc/*/copyright")
}

// key returns a hash of the inputs of a userland.
func (u userland) key() string {
	parts := append(u.arguments(), debianSuite, runtime.GOARCH)
	if u.refreshedAt != "" {
		parts = append(parts, u.refreshedAt)
	}
	return keyOf(parts...)
}

// buildUserland returns the userland as a tar archive. A userland is rebuilt when its packages change or on request,
// but not when Debian publishes updates, so that builds are reproducible.
func (d debian) buildUserland(ctx context.Context, u userland) (string, error) {
	return d.store.Run(ctx, BuildStep{Name: u.name, Key: u.key(), Make: func(ctx context.Context, file string) error {
		if _, err := os.Stat(debianArchiveKeys); err != nil {
			return fault.New(fault.Invalid, "MissingKeys", "%s is missing: install it with: apt-get install debian-archive-keyring", debianArchiveKeys)
		}
		args := append([]string{"mmdebstrap", "--quiet"}, u.arguments()...)
		args = append(args, proxyOptions(ctx)...)
		args = append(args, debianSuite, file)
		_, err := command{Env: []string{"LC_ALL=C"}, Args: append(args, d.sources...)}.Run(ctx)
		return err
	}})
}

// machineSources returns the files of the machine's apt configuration (root is "/") that name a mirror of the suite, so
// that packages come from the same mirror as the machine's own. Without such a file, as on Ubuntu, mmdebstrap uses
// Debian's public mirrors. Files that also name other suites are omitted, because their keys are unknown.
func machineSources(root string) []string {
	candidates, _ := filepath.Glob(filepath.Join(root, "etc/apt/sources.list.d/debian*"))
	candidates = append(candidates, filepath.Join(root, "etc/apt/sources.list"))
	sort.Strings(candidates)
	var out []string
	for _, file := range candidates {
		text, err := os.ReadFile(file)
		if err == nil && hasOnlySuite(string(text)) {
			out = append(out, file)
		}
	}
	return out
}

// checkVerified rejects apt source files that disable the verification of packages, because a mirror or an attacker in
// the network could then change the packages of every node.
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

// unverified returns the option of an apt source file that disables verification, empty if there is none.
func unverified(text string) string {
	for _, line := range contentLines(text) {
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

// between returns the text between two marks.
func between(text, from, to string) (string, bool) {
	_, rest, begins := strings.Cut(text, from)
	inner, _, ends := strings.Cut(rest, to)
	return inner, begins && ends
}

// hasOnlySuite reports whether an apt source file contains only the suite and its updates.
func hasOnlySuite(text string) bool {
	found := false
	for _, line := range contentLines(text) {
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

// proxyOptions returns the mmdebstrap options for the machine's apt proxy.
func proxyOptions(ctx context.Context) []string {
	out, err := command{Args: []string{"apt-config", "dump", "--format", "%f=%v%n", "Acquire::http::Proxy", "Acquire::https::Proxy"}}.Run(ctx)
	if err != nil {
		return nil
	}
	var args []string
	for _, line := range contentLines(string(out)) {
		if name, value, ok := strings.Cut(line, "="); ok && value != "" {
			args = append(args, fmt.Sprintf("--aptopt=%s %q", name, value))
		}
	}
	return args
}
